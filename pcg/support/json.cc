#include "pcg/support/json.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/check.h"
#include "pcg/support/utf8.h"

namespace isomer {
namespace {

void PrintString(absl::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const unsigned char c = text[0];
    size_t length = Utf8CharacterLength(text);
    if (length == 0) {
      absl::StrAppend(out, "\\ufffd");
      length = 1;
    } else if (c == '"' || c == '\\') {
      absl::StrAppend(out, "\\", text.substr(0, 1));
    } else if (c == '\n') {
      absl::StrAppend(out, "\\n");
    } else if (c < 0x20) {
      absl::StrAppendFormat(out, "\\u%04x", c);
    } else {
      absl::StrAppend(out, text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out->push_back('"');
}

void PrintDouble(double value, std::string* out) {
  if (!std::isfinite(value)) {
    absl::StrAppend(out, "null");
    return;
  }
  char buffer[32];
  out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

}  // namespace

Json& Json::operator[](absl::string_view key) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Object();
  Object* object = std::get_if<Object>(&value_);
  ISOMER_CHECK(object != nullptr);
  for (auto& [name, value] : *object) {
    if (name == key) return value;
  }
  return object->emplace_back(std::string(key), Json()).second;
}

void Json::Append(Json element) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Array();
  Array* array = std::get_if<Array>(&value_);
  ISOMER_CHECK(array != nullptr);
  array->push_back(std::move(element));
}

std::string Json::Print() const {
  std::string out;
  PrintTo(0, &out);
  out.push_back('\n');
  return out;
}

std::string Json::PrintCompact() const {
  std::string out;
  PrintTo(-1, &out);
  return out;
}

void Json::PrintTo(int indent, std::string* out) const {
  const bool is_compact = indent < 0;
  const int deeper = is_compact ? indent : indent + 2;
  const auto begin_line = [&](int width) {
    if (!is_compact) absl::StrAppend(out, "\n", std::string(width, ' '));
  };
  // Prints `{...}` or `[...]` with one element a line; `print` prints one element.
  auto print_all = [&](const auto& elements, char open, char close, auto print) {
    out->push_back(open);
    bool first = true;
    for (const auto& element : elements) {
      if (!first) out->push_back(',');
      begin_line(deeper);
      print(element);
      first = false;
    }
    if (!first) begin_line(indent);
    out->push_back(close);
  };
  struct Overloads {
    std::string* out;
    decltype(print_all)& all;
    int deeper;
    void operator()(std::nullptr_t) { absl::StrAppend(out, "null"); }
    void operator()(bool value) { absl::StrAppend(out, value ? "true" : "false"); }
    void operator()(int64_t value) { absl::StrAppend(out, value); }
    void operator()(uint64_t value) { absl::StrAppend(out, value); }
    void operator()(double value) { PrintDouble(value, out); }
    void operator()(const std::string& value) { PrintString(value, out); }
    void operator()(const Array& array) {
      all(array, '[', ']', [&](const Json& element) { element.PrintTo(deeper, out); });
    }
    void operator()(const Object& object) {
      all(object, '{', '}', [&](const auto& entry) {
        PrintString(entry.first, out);
        absl::StrAppend(out, deeper < 0 ? ":" : ": ");
        entry.second.PrintTo(deeper, out);
      });
    }
  };
  std::visit(Overloads{out, print_all, deeper}, value_);
}

}  // namespace isomer
