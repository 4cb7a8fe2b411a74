#include "models/zoo/blocks/key_value_cache.h"

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

TensorRef FirstNumbers(ModelBuilder& b, const std::string& name, int64_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  return b.Constant(name, {count}, std::move(numbers), DataType::kInt64);
}

}  // namespace

KeyValueCache MakeCache(ModelBuilder& b, const KeyValueSizes& sizes) {
  KeyValueCache cache{.length = sizes.length, .decodes = sizes.tokens == 1};
  // Places are constants of float32.
  constexpr int64_t kMostPlaces = int64_t{1} << 24;
  if (sizes.tokens > sizes.length || sizes.length > kMostPlaces) {
    b.Fail(absl::InvalidArgumentError(absl::StrCat("cache=", sizes.length, ": ", sizes.tokens,
                                                   " to ", kMostPlaces, " tokens are expected")));
    return cache;
  }
  cache.rows = cache.decodes
                   ? b.Reshape(b.Input("position", {}, DataType::kInt64), {1}, "cache/rows")
                   : FirstNumbers(b, "cache/rows", sizes.tokens);
  cache.index = b.Call(
      {OpKind::kExpand,
       {{"shape",
         std::vector<int64_t>{sizes.batch, sizes.key_heads, sizes.tokens, sizes.head_size}}}},
      {b.Reshape(cache.rows, {1, 1, sizes.tokens, 1}, "cache/row")}, "cache/index");
  if (!cache.decodes) return cache;
  const TensorRef is_seen =
      b.Call(OpKind::kLessEqual, {FirstNumbers(b, "cache/places", sizes.length), cache.rows},
             "cache/is_seen");
  const TensorRef seen = b.Constant("cache/seen", {1}, {0});
  const TensorRef unseen = b.Constant("cache/unseen", {1}, {std::numeric_limits<float>::lowest()});
  cache.mask = b.Reshape(b.Call(OpKind::kWhere, {is_seen, seen, unseen}, "cache/mask"),
                         {1, sizes.length}, "cache/mask_of_query");
  return cache;
}

TensorRef Cached(ModelBuilder& b, const KeyValueCache& cache, TensorRef x,
                 const std::string& name) {
  std::vector<int64_t> sizes = b.Sizes(x);
  if (!b.ok()) return x;
  sizes[2] = cache.length;
  const TensorRef before = b.Input(name, sizes);
  const TensorRef next = b.Call({OpKind::kScatterElements, {{"axis", int64_t{2}}}},
                                {before, cache.index, x}, name + "/written");
  b.Output(name, next);
  return cache.decodes ? next : x;
}

TensorRef LastTokens(ModelBuilder& b, TensorRef x) {
  const std::vector<int64_t> sizes = b.Sizes(x);
  if (!b.ok() || sizes[1] == 1) return x;
  return b.Call({OpKind::kSlice,
                 {{"starts", std::vector<int64_t>{0, sizes[1] - 1, 0}},
                  {"sizes", std::vector<int64_t>{sizes[0], 1, sizes[2]}},
                  {"steps", std::vector<int64_t>{1, 1, 1}}}},
                {x}, "last_tokens");
}

TensorRef AtRows(ModelBuilder& b, const KeyValueCache& cache, TensorRef table,
                 const std::string& name) {
  return b.Call({OpKind::kGather, {{"axis", int64_t{0}}}}, {table, cache.rows}, name);
}

}  // namespace isomer
