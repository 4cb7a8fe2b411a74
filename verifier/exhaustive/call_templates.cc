// The templates of CallSpace: rank by rank, attribute by attribute.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "verifier/exhaustive/call_space.h"

namespace isomer {
namespace {

// "[t,u]", "[1,u]", "[u]", "[]", ..: what broadcasts to the last `rank` of four dims.
std::vector<std::string> Broadcasts(int rank) {
  const std::vector<std::string> names = {"s", "t", "u", "v"};
  std::vector<std::string> shapes;
  for (int own = 0; own <= rank; ++own) {
    for (int ones = 0; ones < 1 << own; ++ones) {
      std::vector<std::string> dims;
      for (int i = 0; i < own; ++i) {
        dims.push_back(ones >> i & 1 ? "1" : names[4 - own + i]);
      }
      shapes.push_back(absl::StrCat("[", absl::StrJoin(dims, ","), "]"));
    }
  }
  return shapes;
}

std::vector<std::string> BinaryTemplates(const std::string& name) {
  std::vector<std::string> texts;
  for (int rank : {1, 2, 3, 4}) {
    const std::string full = Broadcasts(rank)[Broadcasts(rank).size() - (1 << rank)];
    for (const std::string& other : Broadcasts(rank)) {
      texts.push_back(absl::StrCat(name, " ", full, " ", other));
      if (other != full) texts.push_back(absl::StrCat(name, " ", other, " ", full));
    }
  }
  texts.push_back(absl::StrCat(name, " [t,1] [1,u]"));
  texts.push_back(absl::StrCat(name, " [t,1,v] [u,1]"));
  return texts;
}

std::vector<std::string> WhereTemplates() {
  std::vector<std::string> texts;
  for (int rank : {1, 2, 3}) {
    const std::vector<std::string> shapes = Broadcasts(rank);
    const std::string full = shapes[shapes.size() - (1 << rank)];
    for (const std::string& a : shapes) {
      for (const std::string& b : shapes) {
        texts.push_back(absl::StrCat("where bool", full, " ", a, " ", b));
        texts.push_back(absl::StrCat("where bool", a, " ", full, " ", b));
        texts.push_back(absl::StrCat("where bool", a, " ", b, " ", full));
      }
    }
  }
  texts.push_back("where bool[s,t,u,v] [s,t,u,v] [s,t,u,v]");
  texts.push_back("where bool[s,1,u,1] [s,t,u,v] [u,v]");
  texts.push_back("where bool[s,t,u,v] [v] [s,1,1,v]");
  return texts;
}

std::vector<std::string> TransposeTemplates() {
  std::vector<std::string> texts;
  for (int rank : {1, 2, 3, 4}) {
    std::vector<int> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    const std::vector<std::string> names = {"s", "t", "u", "v"};
    do {
      texts.push_back(absl::StrCat("transpose(perm=[", absl::StrJoin(perm, ","), "]) [",
                                   absl::StrJoin(names.begin(), names.begin() + rank, ","), "]"));
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
  return texts;
}

std::vector<std::string> ReductionTemplates(const std::string& name) {
  return {absl::StrCat(name, "(axes=[A],keepdims=K) [*]"),
          absl::StrCat(name, "(axes=[A,B],keepdims=K) [*,u,v]"),
          absl::StrCat(name, "(axes=[-3,-2,-1],keepdims=K) [*,t,u,v]"),
          absl::StrCat(name, "(axes=[0,1,2,3],keepdims=K) [s,t,u,v]")};
}

// Attributes of windows over `rank` spatial dims, whose letters are P Q (margins), S T (strides)
// and, if `dilated`, D E.
std::string WindowAttributes(int rank, bool dilated) {
  const char* const strides[] = {"S", "S,T", "S,T,1"};
  const char* const margins[] = {"P,Q", "P,U,Q,V", "P,U,0,Q,V,0"};
  const char* const dilations[] = {"D", "D,E", "D,E,1"};
  std::string text =
      absl::StrCat("stride=[", strides[rank - 1], "],padding=[", margins[rank - 1], "]");
  if (dilated) absl::StrAppend(&text, ",dilation=[", dilations[rank - 1], "]");
  return text;
}

constexpr const char* kImages[] = {"y", "y,x", "z,y,x"};
constexpr const char* kKernels[] = {"r", "r,q", "r,q,p"};

std::vector<std::string> ConvolutionTemplates(const std::string& name, int rank) {
  return {absl::StrCat(name, "(", WindowAttributes(rank, true), ",groups=G) [n,Gc,",
                       kImages[rank - 1], "] [Go,c,", kKernels[rank - 1], "]")};
}

std::vector<std::string> PoolTemplates(const std::string& name) {
  std::vector<std::string> texts;
  for (int rank : {1, 2, 3}) {
    texts.push_back(absl::StrCat(
        name, "(kernel=[", kKernels[rank - 1], "],", WindowAttributes(rank, false),
        name == "avg_pool" ? ",count_include_pad=K" : "", ") [n,c,", kImages[rank - 1], "]"));
  }
  return texts;
}

std::vector<std::string> ConvTransposeTemplates() {
  std::vector<std::string> texts;
  const char* const extra[] = {"X", "X,0", "0,0,X"};
  for (int rank : {1, 2, 3}) {
    texts.push_back(absl::StrCat("conv_transpose(", WindowAttributes(rank, true),
                                 ",output_padding=[", extra[rank - 1], "],groups=G) [n,Gc,",
                                 kImages[rank - 1], "] [Gc,o,", kKernels[rank - 1], "]"));
  }
  return texts;
}

}  // namespace

std::vector<std::string> CallTemplates(OpKind kind) {
  const std::string name(OpName(kind));
  switch (kind) {
    case OpKind::kMatMul:
      return {"matmul [*,m,k] [*,k,n]",     "matmul [*,m,k] [k,n]",
              "matmul [v,m,k] [1,k,n]",     "matmul [1,m,k] [v,k,n]",
              "matmul [u,1,m,k] [1,v,k,n]", "matmul [S,T,v,m,k] [S,T,v,k,n]"};
    case OpKind::kLinear:
      return {"linear(activation=Z) [*,k] [k,n]", "linear(activation=Z) [*,k] [k,n] [n]",
              "linear(activation=5) [*,k] [k,n] [n]"};
    case OpKind::kConv1d:
      return ConvolutionTemplates(name, 1);
    case OpKind::kConv2d:
      return ConvolutionTemplates(name, 2);
    case OpKind::kConv3d:
      return ConvolutionTemplates(name, 3);
    case OpKind::kConvTranspose:
      return ConvTransposeTemplates();
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return PoolTemplates(name);
    case OpKind::kAdaptiveAvgPool:
      return {"adaptive_avg_pool(output=[o]) [n,c,y]", "adaptive_avg_pool(output=[o,p]) [n,c,y,x]",
              "adaptive_avg_pool(output=[o,p,q]) [n,c,z,y,x]"};
    case OpKind::kWhere:
      return WhereTemplates();
    case OpKind::kDropout:
      return {"dropout(rate=0.25,salt=Z) [*] i64[]"};
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
    case OpKind::kCumSum:
      return {absl::StrCat(
          name, kind == OpKind::kCumSum ? "(axis=A,exclusive=K,reverse=X) [*]" : "(axis=A) [*]")};
    case OpKind::kLayerNorm:
      return {"layer_norm(epsilon=0.125) [*,h] [h] [h]"};
    case OpKind::kRmsNorm:
      return {"rms_norm(epsilon=0.125) [*,h] [h]"};
    case OpKind::kGroupNorm:
      return {"group_norm(groups=G,epsilon=0.125) [n,Gc] [Gc] [Gc]",
              "group_norm(groups=G,epsilon=0.125) [n,Gc,y] [Gc] [Gc]",
              "group_norm(groups=G,epsilon=0.125) [n,Gc,y,x] [Gc] [Gc]",
              "group_norm(groups=4,epsilon=0.125) [n,4,y] [4] [4]"};
    case OpKind::kBatchNorm:
      return {"batch_norm(epsilon=0.125) [n,c] [c] [c] [c] [c]",
              "batch_norm(epsilon=0.125) [n,c,y] [c] [c] [c] [c]",
              "batch_norm(epsilon=0.125) [n,c,y,x] [c] [c] [c] [c]"};
    case OpKind::kBatchNormTraining:
      return {"batch_norm_training(epsilon=0.125) [n,c] [c] [c]",
              "batch_norm_training(epsilon=0.125) [n,c,y] [c] [c]",
              "batch_norm_training(epsilon=0.125) [n,c,y,x] [c] [c]"};
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
    case OpKind::kReduceProd:
      return ReductionTemplates(name);
    case OpKind::kArgMax:
    case OpKind::kArgMin:
      return {absl::StrCat(name, "(axis=A,keepdims=K,last=X) [*]")};
    case OpKind::kTopK:
      return {"topk(k=p,axis=A,largest=K) [*]"};
    case OpKind::kTranspose:
      return TransposeTemplates();
    case OpKind::kReshape:
      return {"reshape(shape=[ab]) [a,b]",         "reshape(shape=[a,b]) [ab]",
              "reshape(shape=[a,bc]) [ab,c]",      "reshape(shape=[ab,c]) [a,bc]",
              "reshape(shape=[a,b,c]) [ab,c]",     "reshape(shape=[a,b,c]) [a,bc]",
              "reshape(shape=[ab,c]) [a,b,c]",     "reshape(shape=[a,bc]) [a,b,c]",
              "reshape(shape=[b,a]) [a,b]",        "reshape(shape=[b,a,c]) [a,b,c]",
              "reshape(shape=[a,b,c,d]) [ab,cd]",  "reshape(shape=[ab,cd]) [a,b,c,d]",
              "reshape(shape=[a,b,c,d]) [a,bc,d]", "reshape(shape=[a,bc,d]) [a,b,c,d]",
              "reshape(shape=[a,bd,c]) [ab,dc]",   "reshape(shape=[abc]) [a,b,c]"};
    case OpKind::kConcat:
      return {"concat(axis=-1) [*,m] [*,n]",           "concat(axis=-2) [*,m,v] [*,n,v]",
              "concat(axis=0) [m,t,u] [n,t,u]",        "concat(axis=0) [m,t,u,v] [n,t,u,v]",
              "concat(axis=1) [s,m,u,v] [s,n,u,v]",    "concat(axis=-1) [*,m] [*,n] [*,k]",
              "concat(axis=0) [m,u] [n,u] [k,u]",      "concat(axis=-1) [u,m] [u,n] [u,k] [u,p]",
              "concat(axis=0) [m,t,u] [n,t,u] [k,t,u]"};
    case OpKind::kSplit:
      return {"split(axis=-1,sizes=[m,n]) [*,m+n]",    "split(axis=-2,sizes=[m,n]) [*,m+n,v]",
              "split(axis=0,sizes=[m,n]) [m+n,t,u]",   "split(axis=0,sizes=[m,n]) [m+n,t,u,v]",
              "split(axis=1,sizes=[m,n]) [s,m+n,u,v]", "split(axis=-1,sizes=[m,n,k]) [*,m+n+k]",
              "split(axis=0,sizes=[m,n,k]) [m+n+k,u]"};
    case OpKind::kSlice:
      return {"slice(starts=[L],sizes=[m],steps=[N]) [n]",
              "slice(starts=[0,L],sizes=[u,m],steps=[1,N]) [u,n]",
              "slice(starts=[L,0],sizes=[m,u],steps=[N,1]) [n,u]",
              "slice(starts=[K,X],sizes=[m,k],steps=[1,S]) [n,o]",
              "slice(starts=[0,L,0],sizes=[t,m,u],steps=[1,N,1]) [t,n,u]",
              "slice(starts=[0,0,K,0],sizes=[s,t,m,u],steps=[1,1,1,1]) [s,t,n,u]"};
    case OpKind::kPad:
      return {"pad(padding=[P,Q],mode=M) [n]",
              "pad(padding=[0,P,0,Q],mode=M) [u,n]",
              "pad(padding=[P,U,Q,V],mode=M) [m,n]",
              "pad(padding=[P,Q],value=0.5) [n]",
              "pad(padding=[0,L,0,L]) [u,n]",
              "pad(padding=[0,P,0,0,Q,0],mode=M) [t,n,u]",
              "pad(padding=[0,0,P,U,0,0,Q,V]) [s,t,m,n]"};
    case OpKind::kExpand:
      return {"expand(shape=[a,b]) [b]",       "expand(shape=[a,b]) [a,1]",
              "expand(shape=[a,b]) [1,b]",     "expand(shape=[a,b,c]) [b,1]",
              "expand(shape=[a,b,c]) [a,1,c]", "expand(shape=[a,b,c,d]) [b,1,d]",
              "expand(shape=[a,b]) [a,b]",     "expand(shape=[a,b,c,d]) [1,b,c,1]"};
    case OpKind::kTrilu:
      return {"trilu(upper=K,k=L) [*,m,n]"};
    case OpKind::kEmbedding:
      return {"embedding [n,h] i64[*]"};
    case OpKind::kEmbeddingBag:
      return {"embedding_bag(mean=K) [n,h] i64[b,l]"};
    case OpKind::kGather:
      return {"gather(axis=A) [*] i64[j]", "gather(axis=A) [*] i64[]",
              "gather(axis=A) [t,u,v] i64[j,k]", "gather(axis=A) [u,v] i64[j,k,p]",
              "gather(axis=-1) [v] i64[j,k,p,q]"};
    case OpKind::kGatherMatMul:
      return {"gather_matmul [*,k] [n,k,h] i64[*]"};
    case OpKind::kGatherRows:
      return {"gather_rows [b,n,h] i64[b,j]", "gather_rows [b,n,h] i64[b,j,k]",
              "gather_rows [b,n,h] i64[b]", "gather_rows [t,b,n,h] i64[t,b,j]"};
    case OpKind::kGatherSum:
      return {"gather_sum [b,n,h] i64[b,j,l] [b,j,l]", "gather_sum [b,n,h] i64[b,j,k,l] [b,j,k,l]",
              "gather_sum [b,n,h] i64[b,l] [b,l]", "gather_sum [t,b,n,h] i64[t,b,j,l] [t,b,j,l]"};
    case OpKind::kGatherElements:
      return {"gather_elements(axis=-1) [*,m] i64[*,n]", "gather_elements(axis=0) [m,u] i64[n,u]",
              "gather_elements(axis=-1) [u,m] i64[k,n]",
              "gather_elements(axis=1) [t,m,u] i64[t,n,u]"};
    case OpKind::kScatterElements:
      return {"scatter_elements(axis=-1,reduction=Z) [*,m] i64[*,n] [*,n]",
              "scatter_elements(axis=0,reduction=Z) [m,u] i64[n,u] [n,u]",
              "scatter_elements(axis=-1,reduction=Z) [u,m] i64[k,n] [k,n]"};
    case OpKind::kOneHot:
      return {"one_hot(depth=d,axis=-1) i64[*]", "one_hot(depth=d,axis=0) i64[u,v]",
              "one_hot(depth=d,axis=1) i64[u,v]"};
    case OpKind::kAttention:
      return {"attention(scale=0.5,causal=K) [b,h,s,e] [b,h,t,e] [b,h,t,f]",
              "attention(scale=0.5,causal=K) [b,Gh,s,e] [b,h,t,e] [b,h,t,f] [s,t]",
              "attention(scale=0.5) [b,Gh,s,e] [b,h,t,e] [b,h,t,f] [b,Gh,s,t]",
              "attention(scale=0.5) [b,h,s,e] [b,h,t,e] [b,h,t,f] [b,1,1,t]"};
    case OpKind::kCappedAttention:
      return {"capped_attention(scale=0.5,cap=1.5,causal=K) [b,h,s,e] [b,h,t,e] [b,h,t,f]",
              "capped_attention(scale=0.5,cap=1.5) [b,Gh,s,e] [b,h,t,e] [b,h,t,f] [s,t]"};
    case OpKind::kSinkAttention:
      return {"sink_attention(scale=0.5,causal=K) [b,Gh,s,e] [b,h,t,e] [b,h,t,f] [Gh]",
              "sink_attention(scale=0.5,causal=1,window=1) [b,h,s,e] [b,h,t,e] [b,h,t,f] [h]"};
    case OpKind::kRotary:
      return {"rotary(interleaved=K) [*,m,2e] [m,e] [m,e]"};
    case OpKind::kLstmCell:
      return {"lstm_cell [*,4,h] [*,h]"};
    case OpKind::kGruCell:
      return {"gru_cell [*,3,h] [*,3,h] [*,h]"};
    case OpKind::kTop2Gating:
      return {"top2_gating(capacity=S,random=K) [g,m,e] i64[]"};
    case OpKind::kTopKRouting:
      return {"topk_routing(k=1,capacity=S) [g,m,e]", "topk_routing(k=1,capacity=S) [g,m,e] [e]",
              "topk_routing(k=1,capacity=S) [t,g,m,e]"};
    case OpKind::kCrossEntropy:
      return {"cross_entropy [*,n] i64[*]", "cross_entropy [t,u,n] i64[t,u]"};
    case OpKind::kMeanSquaredError:
    case OpKind::kBinaryCrossEntropy:
      return {absl::StrCat(name, " [*] [*]")};
    default:
      break;
  }
  if (IsLeaf(kind) || IsParallel(kind)) return {};
  if (MinOperands(kind) == 2) return BinaryTemplates(name);
  switch (kind) {
    case OpKind::kScale:
      return {"scale(factor=0.75) [*]", "scale(factor=0.75) [S,T,D,E,G,u,v]"};
    case OpKind::kGeluTanh:
      return {"gelu_tanh(slope=0.75,cubic=0.125) [*]"};
    case OpKind::kHardSigmoid:
      return {"hard_sigmoid(alpha=0.75,beta=0.5) [*]"};
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
      return {absl::StrCat(name, "(alpha=0.125) [*]")};
    case OpKind::kClip:
      return {"clip(min=-0.5,max=1.25) [*]"};
    case OpKind::kCast:
      return {"cast(to=0) [*]"};
    case OpKind::kNot:
      return {"not bool[*]"};
    default:
      return {absl::StrCat(name, " [*]")};
  }
}

}  // namespace isomer
