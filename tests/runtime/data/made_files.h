// Files of data as other programs write them, made by hand.
#ifndef ISOMER_TESTS_RUNTIME_DATA_MADE_FILES_H_
#define ISOMER_TESTS_RUNTIME_DATA_MADE_FILES_H_

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"

namespace isomer {

// The bytes of these numbers, as the computer has them.
template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
std::string BytesOfOne(T value) {
  return BytesOf(std::vector<T>{value});
}

// NumPy's .npy: `shape` is text, "(2, 3)".
inline std::string NpyBytes(const std::string& descr, const std::string& shape,
                            const std::string& data, const std::string& order = "False") {
  std::string header = absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", order,
                                    ", 'shape': ", shape, ", }");
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  return absl::StrCat(absl::string_view("\x93NUMPY\x01\x00", 8),
                      BytesOfOne(static_cast<uint16_t>(header.size())), header, data);
}

// A ZIP archive of members that are stored; `method` 8 claims that they are compressed.
inline std::string ZipBytes(const std::vector<std::pair<std::string, std::string>>& members,
                            uint16_t method = 0) {
  std::string zip, directory;
  for (const auto& [name, data] : members) {
    const uint32_t size = static_cast<uint32_t>(data.size());
    const std::string common =
        absl::StrCat(BytesOf<uint16_t>({20, 0, method, 0, 0}), BytesOf<uint32_t>({0, size, size}),
                     BytesOf<uint16_t>({static_cast<uint16_t>(name.size()), 0}));
    directory +=
        absl::StrCat("PK\1\2", BytesOfOne<uint16_t>(20), common, BytesOf<uint16_t>({0, 0, 0}),
                     BytesOfOne<uint32_t>(0), BytesOfOne(static_cast<uint32_t>(zip.size())), name);
    zip += absl::StrCat("PK\3\4", common, name, data);
  }
  const uint16_t count = static_cast<uint16_t>(members.size());
  return absl::StrCat(zip, directory, "PK\5\6", BytesOf<uint16_t>({0, 0, count, count}),
                      BytesOf<uint32_t>({static_cast<uint32_t>(directory.size()),
                                         static_cast<uint32_t>(zip.size())}),
                      BytesOfOne<uint16_t>(0));
}

// IDX of bytes.
inline std::string IdxBytes(const std::vector<uint32_t>& dims, const std::string& data) {
  std::string bytes = {0, 0, 8, static_cast<char>(dims.size())};
  for (uint32_t dim : dims) {
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(dim >> shift);
  }
  return bytes + data;
}

// Megatron's index of sequences of these lengths, each a document; `type` 8 is uint16.
inline std::string MegatronIndex(const std::vector<int32_t>& lengths, char type = 8,
                                 int64_t token_bytes = 2) {
  std::vector<int64_t> places, documents = {0};
  int64_t place = 0;
  for (int32_t length : lengths) {
    places.push_back(place);
    place += length * token_bytes;
    documents.push_back(static_cast<int64_t>(places.size()));
  }
  return absl::StrCat(absl::string_view("MMIDIDX\0\0", 9), BytesOfOne<uint64_t>(1),
                      std::string(1, type), BytesOfOne<uint64_t>(lengths.size()),
                      BytesOfOne<uint64_t>(documents.size()), BytesOf(lengths), BytesOf(places),
                      BytesOf(documents));
}

// A file of the running test.
inline std::string MadeFile(const std::string& name, const std::string& contents) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFileAtomically(path, contents).ok()) << path;
  return path;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_DATA_MADE_FILES_H_
