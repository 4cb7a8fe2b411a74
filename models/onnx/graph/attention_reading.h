// Attention that a file spells out: products, a mask, a softmax, and a guard against NaN.
#ifndef ISOMER_MODELS_ONNX_GRAPH_ATTENTION_READING_H_
#define ISOMER_MODELS_ONNX_GRAPH_ATTENTION_READING_H_

#include "pcg/ir/plan.h"

namespace isomer {

// Turns every
//
//   matmul(softmax(scale(matmul(q, k')) + mask), v)      q [b,h,s,e], k' [b,h,e,t], v [b,h,t,f]
//
// into one attention, where each of scale and mask may be absent, q and k' may be scaled instead,
// and k' is k with its last two dims exchanged, in one transpose or between two reshapes. Scores
// that are capped, scale(tanh(scale(matmul(q, k'))); cap) + mask, become a capped_attention.
//
//   masks   A constant of 0 and of what excludes (exclusion.h). Where it excludes just the keys
//           behind each query it is causal; other masks are added as they are. That a finite number
//           excludes, and is not the number that it is, is an assumption on what the file means,
//           which the model names.
//   guards  where(isnan(p), 0, p) of p = softmax(..) is p, where every query keeps a finite score.
//           A mask that is computed from data, or adds infinities, may leave a query none: such a
//           guard makes 0 of what would be NaN, and stays.
//
// What has none of these, a product scaled and its keys transposed, is left to the rules, which
// prove what attention is. Constants that nothing uses afterwards go. REQUIRES: the types of the
// model are sequential.
void ReadAttention(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_ATTENTION_READING_H_
