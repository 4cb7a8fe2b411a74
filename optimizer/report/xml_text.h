#ifndef ISOMER_OPTIMIZER_REPORT_XML_TEXT_H_
#define ISOMER_OPTIMIZER_REPORT_XML_TEXT_H_

#include <string>

#include "absl/strings/str_replace.h"

namespace isomer {

// For the text and the attributes of an SVG drawing.
inline std::string XmlText(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_XML_TEXT_H_
