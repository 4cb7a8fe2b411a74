// Tokens of text: numbers of one size, one behind the other, that training cuts into sequences.
#ifndef ISOMER_RUNTIME_DATA_TOKENS_H_
#define ISOMER_RUNTIME_DATA_TOKENS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/element_type.h"
#include "runtime/data/records.h"

namespace isomer {

// Nothing but tokens, little-endian, as nanoGPT writes train.bin
// (https://github.com/karpathy/nanoGPT, data/*/prepare.py). Without a `type` it is what the name
// says ("corpus.uint32.bin"), or else uint16 or uint32: uint32 if every second one of the first
// uint16 is zero, which no text has. Errors: a float type, part of a token at the end.
absl::StatusOr<std::shared_ptr<const Records>> OpenRawTokens(std::shared_ptr<const DataFile> file,
                                                             std::optional<ElementType> type);
// The type that a name states between dots, dashes or underscores.
std::optional<ElementType> TypeInName(const std::string& path);

// How the index of Megatron's pair begins.
inline constexpr char kMegatronMagic[] = "MMIDIDX";

// The pair that Megatron-LM's preprocess_data.py writes: documents one behind the other in
// PREFIX.bin, and PREFIX.idx with, behind a magic and a version of 1, the type, the lengths of the
// sequences, where each begins, and the documents that they make
// (https://github.com/NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py). All documents
// are one stream, in the file's order. Errors: lengths and places that do not follow each other, or
// are not all of PREFIX.bin.
absl::StatusOr<std::shared_ptr<const Records>> OpenMegatron(const std::string& prefix);
// The prefix, if `path` is one or has a file of the pair and the other lies beside it.
std::optional<std::string> MegatronPrefix(const std::string& path);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_TOKENS_H_
