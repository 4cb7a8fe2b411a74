#ifndef ISOMER_MODELS_ONNX_IMPORT_EVALUATE_REPEATED_H_
#define ISOMER_MODELS_ONNX_IMPORT_EVALUATE_REPEATED_H_

#include <cstdint>
#include <string>

#include "models/onnx/import/node_importer.h"

namespace isomer {

// Repeated constants of so few elements are written out, too: importers look into them, as lists
// of sizes and axes are.
inline constexpr int64_t kFewElements = 1 << 12;

// Computes the output of a node whose operands are constants that are not trained, one of which
// repeats along a dim, or comes to repeat by it, as of an Expand: on what is held once. False where
// it did not: state->repeated and state->onnx.constants have nothing new then, but operands that
// are written out for what computes with all elements.
bool EvaluateRepeated(const OnnxNode& node, ImportState* state);

// Of an elementwise node of constants, of whose output nothing but the sizes is asked for: defines
// these alone. False for others.
bool DefineSizesAlone(const OnnxNode& node, ImportState* state);

// The elements of the repeated constant of that name, if it is one and they are few enough, become
// a constant of the same name.
void WriteOut(const std::string& name, ImportState* state);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_EVALUATE_REPEATED_H_
