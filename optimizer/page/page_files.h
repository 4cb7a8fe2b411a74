// What the page is made of, compiled into the program: cmake/EmbedFiles.cmake writes the bytes of
// web/ and of the distribution's d3 and dagre.
#ifndef ISOMER_OPTIMIZER_PAGE_PAGE_FILES_H_
#define ISOMER_OPTIMIZER_PAGE_PAGE_FILES_H_

#include "absl/strings/string_view.h"

namespace isomer {

extern const absl::string_view kPageHtml;
extern const absl::string_view kPageStyle;
extern const absl::string_view kPageScripts;  // libraries first
// Packages that were not there when the program was built, "node-d3, node-dagre-layout": then there
// is no page. "": all were.
extern const absl::string_view kMissingPagePackages;

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_PAGE_FILES_H_
