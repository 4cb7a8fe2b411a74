#include "pcg/support/json.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

// Length of the UTF-8 character that `text` starts with, 0 when it is not one (RFC 3629).
size_t Utf8CharacterLength(absl::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const int lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return continues(1) ? 2 : 0;
  if (!continues(1) || !continues(2)) return 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead < 0xF0 || lead > 0xF4 || !continues(3)) return 0;
  const bool overlong = lead == 0xF0 && byte(1) < 0x90;
  const bool too_large = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || too_large ? 0 : 4;
}

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
