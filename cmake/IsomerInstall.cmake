# cmake --install BUILD --prefix P, and packages of the same files by CPack (docs/install.md).
# Programs look for their data beside themselves (pcg/support/data_path.h): all of it may be moved.
include(GNUInstallDirs)

get_property(programs GLOBAL PROPERTY ISOMER_PROGRAMS)
list(FILTER programs INCLUDE REGEX "^isomer-")
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# What programs read, in the folders of the source tree.
set(data ${CMAKE_INSTALL_DATADIR}/isomer)
install(FILES rules/default.rules DESTINATION ${data}/rules)
install(DIRECTORY optimizer/machines DESTINATION ${data}/optimizer FILES_MATCHING PATTERN *.textproto)
install(FILES verifier/mutation/known_answers.txt DESTINATION ${data}/verifier/mutation)
# Models of the examples.
install(DIRECTORY models/data DESTINATION ${data}/models
        FILES_MATCHING PATTERN *.onnx PATTERN *.csv PATTERN README.md)

# The Python package, where Debian's Python looks (below /usr), or PYTHONPATH says; it finds the data
# above from there (python/isomer/__init__.py).
if(ISOMER_BUILDS_PYTHON)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/python/isomer DESTINATION lib/python3/dist-packages
          FILES_MATCHING PATTERN *.py PATTERN *.pyi PATTERN py.typed PATTERN _isomer.*.so
          PATTERN __pycache__ EXCLUDE)
endif()

set(documents ${CMAKE_INSTALL_DATADIR}/doc/isomer)
install(FILES README.md DESTINATION ${documents})
install(DIRECTORY docs DESTINATION ${documents} FILES_MATCHING PATTERN *.md)
install(FILES LICENSE DESTINATION ${documents})
# What Debian wants of a package: who, and which of the licences that it keeps in one place.
file(WRITE ${PROJECT_BINARY_DIR}/manual/copyright
     "Copyright: the authors of Isomer.\n\nLicensed under the Apache License, Version 2.0: LICENSE "
     "beside this file,\non Debian also /usr/share/common-licenses/Apache-2.0.\n")
install(FILES ${PROJECT_BINARY_DIR}/manual/copyright DESTINATION ${documents})

# Manual pages and completion are what programs say of themselves: --help=man, bash, zsh, fish.
if(NOT CMAKE_CROSSCOMPILING)
  set(made "")
  find_program(ISOMER_GZIP gzip)
  foreach(program ${programs})
    set(folder ${PROJECT_BINARY_DIR}/manual/${program})
    file(MAKE_DIRECTORY ${folder})
    set(commands "")
    foreach(form man bash zsh fish)
      list(APPEND commands COMMAND ${program} --help=${form} > ${folder}/${form})
    endforeach()
    set(page man)
    if(ISOMER_GZIP)
      # -n: two builds of one source are equal.
      set(page man.gz)
      list(APPEND commands COMMAND ${ISOMER_GZIP} -9nf ${folder}/man)
    endif()
    add_custom_command(OUTPUT ${folder}/${page} ${folder}/bash ${folder}/zsh ${folder}/fish
                       ${commands} DEPENDS ${program} COMMENT "manual of ${program}" VERBATIM)
    list(APPEND made ${folder}/${page})
    string(REPLACE "man" "${program}.1" installed ${page})
    install(FILES ${folder}/${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME ${installed})
    install(FILES ${folder}/bash RENAME ${program}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${folder}/zsh RENAME _${program}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${folder}/fish RENAME ${program}.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endforeach()
  add_custom_target(manuals ALL DEPENDS ${made})
  # `programs` is all that --install needs.
  add_dependencies(programs manuals)
endif()

set(CPACK_PACKAGE_NAME isomer)
set(CPACK_PACKAGE_VENDOR Isomer)
set(CPACK_PACKAGE_CONTACT "Isomer maintainers <maintainers@isomer.invalid>" CACHE STRING
    "Who answers for packages that are built here")
# Debian asks for one; what changed is in the commits, and why in docs/decisions.md.
if(ISOMER_GZIP)
  string(TIMESTAMP today "%a, %d %b %Y 00:00:00 +0000" UTC)  # of SOURCE_DATE_EPOCH if that is set
  file(WRITE ${PROJECT_BINARY_DIR}/manual/changelog
       "isomer (${PROJECT_VERSION}) unstable; urgency=medium\n\n"
       "  * See docs/decisions.md.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
  execute_process(COMMAND ${ISOMER_GZIP} -9nf changelog
                  WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/manual)
  install(FILES ${PROJECT_BINARY_DIR}/manual/changelog.gz DESTINATION ${documents})
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "superoptimizer for distributed deep learning, with proofs")
set(CPACK_PACKAGE_DESCRIPTION
    "Isomer takes a neural network and a cluster and returns the fastest way to run
it there that is proved equal: algebra and parallelism are substitutions on one
graph, found and proved by machine.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ)
find_program(ISOMER_DPKG_SHLIBDEPS dpkg-shlibdeps)
if(ISOMER_DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# For plans that run as processes, and pictures of graphs.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
if(ISOMER_BUILDS_PYTHON)
  string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS ", python3-numpy")
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS graphviz)
include(CPack)
