#include "verifier/exhaustive/call_space.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

constexpr int kMaxRank = 4;
// Of an operand. What is larger says nothing new and takes long.
constexpr int64_t kMaxElements = 256;

// What a letter stands for.
const std::vector<int64_t>& RangeOf(char letter) {
  static const auto* const kRanges = new std::map<char, std::vector<int64_t>>{
      {'p', {1, 2, 3}},      {'q', {1, 2, 3}},        {'r', {1, 2, 3}},  // kernels
      {'S', {1, 2}},         {'T', {1, 2}},           {'D', {1, 2}},
      {'E', {1, 2}},  // strides, dilations
      {'P', {0, 1}},         {'Q', {0, 1}},           {'U', {0, 1}},
      {'V', {0, 1}},                                                            // margins
      {'K', {0, 1}},         {'X', {0, 1}},                                     // switches
      {'G', {1, 2}},         {'A', {-4, -3, -2, -1}}, {'B', {-4, -3, -2, -1}},  // groups, axes
      {'N', {-2, -1, 1, 2}}, {'M', {0, 1, 2, 3}},     {'L', {-1, 0, 1, 2}},     // steps, modes, k
      {'Z', {0, 1, 2, 3, 4}}};                                                  // of five
  static const auto* const kSizes = new std::vector<int64_t>{1, 2, 3, 4};
  const auto at = kRanges->find(letter);
  return at == kRanges->end() ? *kSizes : at->second;
}

// The numbers of an expression: "Gc" a product, "m+n" a sum, "12" a number.
int64_t ValueOf(absl::string_view expression, const std::map<char, int64_t>& values) {
  int64_t sum = 0;
  for (absl::string_view term : absl::StrSplit(expression, '+')) {
    int64_t product = 1, number = 0;
    bool has_number = false;
    for (char c : term) {
      if (absl::ascii_isdigit(c)) {
        number = 10 * number + (c - '0');
        has_number = true;
      } else {
        product *= values.at(c);
      }
    }
    sum += has_number ? product * number : product;
  }
  return sum;
}

// Where an expression begins in "name=[e,e],name=e": after one of "[,=", unless it is a name.
bool IsExpression(absl::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](char c) { return absl::ascii_isalnum(c) || c == '+'; });
}

// Applies f to every expression of the attributes of `op`, in place.
template <typename Function>
std::string WithExpressions(const std::string& op, Function f) {
  const size_t open = op.find('(');
  if (open == op.npos) return op;
  std::string result = op.substr(0, open + 1), word;
  auto end_word = [&](char next) {
    absl::StrAppend(&result, next != '=' && IsExpression(word) ? f(word) : word);
    word.clear();
  };
  for (char c : op.substr(open + 1)) {
    if (absl::StrContains("[],=()", absl::string_view(&c, 1))) {
      end_word(c);
      result.push_back(c);
    } else {
      word.push_back(c);
    }
  }
  return result;
}

void AddLetters(absl::string_view expression, std::string* letters) {
  for (char c : expression) {
    if (absl::ascii_isalpha(c) && !absl::StrContains(*letters, absl::string_view(&c, 1))) {
      letters->push_back(c);
    }
  }
}

}  // namespace

std::string SmallCall::ToString() const {
  return absl::StrCat(op.ToString(), " ",
                      absl::StrJoin(operands, " ", [](std::string* out, const TensorType& type) {
                        out->append(type.ToString());
                      }));
}

CallSpace::CallSpace(OpKind kind) {
  for (const std::string& text : CallTemplates(kind)) {
    if (!absl::StrContains(text, '*')) {
      Add(text);
      continue;
    }
    // As many dims in front as the ranks allow.
    int64_t longest = 0;
    for (absl::string_view word : absl::StrSplit(text, ' ')) {
      if (!absl::StrContains(word, '*')) continue;
      longest = std::max<int64_t>(longest, std::count(word.begin(), word.end(), ','));
    }
    const char* const kFront[] = {"", "v,", "u,v,", "t,u,v,", "s,t,u,v,"};
    for (int64_t more = longest == 0 ? 1 : 0; longest + more <= kMaxRank; ++more) {
      const std::string front = kFront[more];
      const std::string alone = front.substr(0, front.empty() ? 0 : front.size() - 1);
      Add(absl::StrReplaceAll(text, {{"[*]", absl::StrCat("[", alone, "]")}, {"*,", front}}));
    }
  }
}

void CallSpace::Add(const std::string& text) {
  std::vector<std::string> words = absl::StrSplit(text, ' ');
  Template made;
  made.op = words[0];
  made.operands.assign(words.begin() + 1, words.end());
  WithExpressions(made.op, [&](const std::string& e) {
    AddLetters(e, &made.letters);
    return e;
  });
  for (const std::string& operand : made.operands) {
    AddLetters(absl::string_view(operand).substr(operand.find('[')), &made.letters);
  }
  for (char letter : made.letters) made.size *= static_cast<int64_t>(RangeOf(letter).size());
  size_ += made.size;
  templates_.push_back(std::move(made));
}

std::optional<SmallCall> CallSpace::At(int64_t point) const {
  const Template* chosen = nullptr;
  for (const Template& t : templates_) {
    if (point < t.size) {
      chosen = &t;
      break;
    }
    point -= t.size;
  }
  if (chosen == nullptr) return std::nullopt;
  std::map<char, int64_t> values;
  for (char letter : chosen->letters) {
    const std::vector<int64_t>& range = RangeOf(letter);
    values[letter] = range[point % static_cast<int64_t>(range.size())];
    point /= static_cast<int64_t>(range.size());
  }
  SmallCall call;
  const std::string text = WithExpressions(
      chosen->op, [&](const std::string& e) { return absl::StrCat(ValueOf(e, values)); });
  absl::StatusOr<Operator> op = ParseOperator(text);
  if (!op.ok()) return std::nullopt;
  call.op = *std::move(op);
  std::vector<Shape> shapes;
  for (const std::string& operand : chosen->operands) {
    const size_t open = operand.find('[');
    const absl::string_view dtype = absl::string_view(operand).substr(0, open);
    std::vector<int64_t> sizes;
    const std::string dims = operand.substr(open + 1, operand.size() - open - 2);
    int64_t elements = 1;
    for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
      sizes.push_back(ValueOf(dim, values));
      elements *= sizes.back();
    }
    if (elements < 1 || elements > kMaxElements) return std::nullopt;
    const auto type = ParseDataType(dtype.empty() ? "f32" : dtype);
    ISOMER_CHECK(type.ok());
    call.operands.push_back(SequentialType(sizes, *type));
    shapes.push_back(call.operands.back().GlobalShape());
  }
  absl::StatusOr<Declaration> d = Declare(call.op, shapes);
  if (!d.ok()) return std::nullopt;
  call.declaration = *std::move(d);
  return call;
}

int64_t CallSpace::Spread(int64_t place) const {
  // Steps of about the golden ratio of the space, prime to its size.
  int64_t step =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(size_) * 0.6180339887));
  while (std::gcd(step, size_) != 1) ++step;
  return static_cast<int64_t>(static_cast<__int128>(place) * step % size_);
}

}  // namespace isomer
