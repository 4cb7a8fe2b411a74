// The numbers and names by which the formats call operators and parameters. TASO: OpType and
// PMParameter of include/taso/ops.h; Unity: the names that FlexFlow's substitution_loader.h reads.
#include <algorithm>
#include <iterator>

#include "verifier/audit/read_rules.h"

namespace isomer {
namespace {

// By number.
constexpr absl::string_view kTasoOperators[] = {
    "OP_INPUT",
    "OP_WEIGHT",
    "OP_ANY",
    "OP_CONV2D",
    "OP_DROPOUT",
    "OP_LINEAR",
    "OP_POOL2D_MAX",
    "OP_POOL2D_AVG",
    "OP_RELU",
    "OP_SIGMOID",
    "OP_TANH",
    "OP_BATCHNORM",
    "OP_CONCAT",
    "OP_SPLIT",
    "OP_RESHAPE",
    "OP_TRANSPOSE",
    "OP_EW_ADD",
    "OP_EW_MUL",
    "OP_MATMUL",
    "OP_MUL",
    "OP_ENLARGE",
    "OP_MERGE_GCONV",
    "OP_CONSTANT_IMM",
    "OP_CONSTANT_ICONV",
    "OP_CONSTANT_ONE",
    "OP_CONSTANT_POOL",
    "OP_SQUEEZE",
    "OP_UNSQUEEZE",
    "OP_EW_SUB",
    "OP_EW_DIV",
    "OP_EW_EQUAL",
    "OP_EW_GREATER",
    "OP_EW_LESS",
    "OP_EW_MAX",
    "OP_EW_MIN",
    "OP_REDUCE_ARGMAX",
    "OP_REDUCE_ARGMIN",
    "OP_REDUCE_MAX",
    "OP_REDUCE_MEAN",
    "OP_REDUCE_MIN",
    "OP_REDUCE_PROD",
    "OP_REDUCE_SUM",
    "OP_PAD",
    "OP_SHAPE",
    "OP_SIZE",
    "OP_TOPK",
    "OP_WHERE",
    "OP_CEIL",
    "OP_CAST",
    "OP_EXP",
    "OP_ROUND",
    "OP_LOG",
    "OP_LOGICAL_NOT",
    "OP_SQRT",
    "OP_LEAKYRELU",
    "OP_SLICE",
    "OP_RESIZE",
    "OP_PRELU",
    "OP_FUSE_CONV_BATCHNORM",
    "OP_FUSE_CONV_BATCHNORM_ALPHA_VAR",
    "OP_FUSE_CONV_BATCHNORM_BIAS",
    "OP_BROADCAST_ADD",
};

constexpr absl::string_view kTasoParameters[] = {
    "PM_OP_TYPE",  "PM_NUM_INPUTS", "PM_NUM_OUTPUTS", "PM_GROUP",      "PM_KERNEL_H",
    "PM_KERNEL_W", "PM_STRIDE_H",   "PM_STRIDE_W",    "PM_PAD",        "PM_ACTI",
    "PM_NUMDIM",   "PM_AXIS",       "PM_PERM",        "PM_OUTSHUFFLE", "PM_MERGE_GCONV_COUNT",
    "PM_AXES",     "PM_KEEP_DIMS",
};

// What Unity has besides TASO's.
constexpr absl::string_view kUnityOperators[] = {
    "OP_NOOP",
    "OP_BATCHMATMUL",
    "OP_SCALAR_MULTIPLY",
    "OP_SCALAR_ADD",
    "OP_SCALAR_FLOOR_DIV",
    "OP_SCALAR_TRUE_DIV",
    "OP_SCALAR_SUB",
    "OP_IDENTITY",
    "OP_ELU",
    "OP_FLAT",
    "OP_SOFTMAX",
    "OP_EMBEDDING",
    "OP_GROUP_BY",
    "OP_CACHE",
    "OP_AGGREGATE",
    "OP_AGG_SPEC",
    "OP_REVERSE",
    "OP_SIN",
    "OP_COS",
    "OP_GELU",
    "OP_MULTIHEAD_ATTENTION",
    "OP_FUSED",
    "OP_RSQRT",
    "OP_POW",
    "OP_MEAN",
    "OP_LAYERNORM",
    "OP_RMS_NORM",
    "OP_PARTITION",
    "OP_COMBINE",
    "OP_REPLICATE",
    "OP_REDUCE",
    "OP_PIPELINE",
    "OP_FUSED_PARALLEL",
};

constexpr absl::string_view kUnityParameters[] = {
    "PM_PADDING_H",          "PM_PADDING_W",     "PM_EPSILON",          "PM_REPARTITION_DIM",
    "PM_REPARTITION_DEGREE", "PM_REPLICATE_DIM", "PM_REPLICATE_DEGREE", "PM_COMBINE_DIM",
    "PM_COMBINE_DEGREE",     "PM_REDUCTION_DIM", "PM_REDUCTION_DEGREE", "PM_SOFTMAX_DIM",
    "PM_NUM_HEADS",          "PM_PARALLEL_DIM",  "PM_PARALLEL_DEGREE",
};

template <size_t N>
absl::string_view At(const absl::string_view (&names)[N], int number) {
  return number >= 0 && number < static_cast<int>(N) ? names[number] : "";
}

template <size_t N>
bool Has(const absl::string_view (&names)[N], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

absl::string_view TasoOperatorName(int number) { return At(kTasoOperators, number); }
absl::string_view TasoParameterName(int number) { return At(kTasoParameters, number); }
bool IsUnityOperator(absl::string_view name) {
  return Has(kUnityOperators, name) || Has(kTasoOperators, name);
}
bool IsUnityParameter(absl::string_view name) {
  return Has(kUnityParameters, name) || Has(kTasoParameters, name);
}

}  // namespace isomer
