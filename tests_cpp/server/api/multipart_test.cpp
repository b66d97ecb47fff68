// Forms with files, whole, cut and hostile.
#include "server/api/multipart.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zinc_rt::server {
namespace {

constexpr std::string_view kFormType = "multipart/form-data; boundary=XyZ";
const std::string kForm =
    "--XyZ\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
    "--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".jsonl\"\r\n"
    "Content-Type: application/jsonl\r\n\r\n{\"a\":\r\n1}\r\n--XY\r\n\r\n--XyZ--\r\n";

TEST(Multipart, FieldsAndFilesAreTheirBytes) {
  const auto form = read_form(kFormType, kForm);
  ASSERT_TRUE(form) << form.error().message;
  ASSERT_EQ(form->size(), 2u);
  EXPECT_EQ((*form)[0].name, "purpose");
  EXPECT_EQ((*form)[0].body, "batch");
  EXPECT_FALSE((*form)[0].is_file);
  EXPECT_EQ((*form)[1].file_name, "a \"b\".jsonl");
  EXPECT_TRUE((*form)[1].is_file);
  EXPECT_EQ((*form)[1].body, "{\"a\":\r\n1}\r\n--XY\r\n");
}

TEST(Multipart, ABodyThatIsCutAnywhereIsRefused) {
  for (std::size_t n = 0; n < kForm.size() - 2; ++n) {
    const auto form = read_form(kFormType, std::string_view(kForm).substr(0, n));
    ASSERT_FALSE(form) << n;
    EXPECT_EQ(form.error().status, 400);
    EXPECT_TRUE(form.error().message.starts_with("[form] ")) << form.error().message;
  }
  EXPECT_TRUE(read_form(kFormType, std::string_view(kForm).substr(0, kForm.size() - 2)));  // the last line's end
}

TEST(Multipart, TheBoundaryMayBeQuotedAndHasUpToSeventyBytes) {
  const auto body = [](const std::string& b) {
    return "--" + b + "\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--" + b + "--";
  };
  const std::string seventy(70, '-');
  EXPECT_TRUE(read_form("Multipart/Form-Data; charset=utf-8; boundary=\"a b\"", body("a b")));
  EXPECT_TRUE(read_form("multipart/form-data;boundary=" + seventy, body(seventy)));
  for (const std::string type :
       {"multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"a ",
        "multipart/form-data; boundary=\"a \"", "multipart/form-data; boundary=a; boundary=b",
        "multipart/mixed; boundary=a", "multipart/form-data boundary=a", "multipart/form-data; boundary=a b", ""})
    EXPECT_FALSE(read_form(type, body("a"))) << type;
  EXPECT_FALSE(read_form("multipart/form-data; boundary=" + seventy + "-", body(seventy + "-")));
}

struct Hostile {
  std::string body;
  const char* words;
};

TEST(Multipart, WhatCouldBeReadInTwoWaysIsRefusedInWords) {
  const std::string begin = "--XyZ\r\nContent-Disposition: form-data; name=\"a\"";
  const std::string end = "\r\n--XyZ--\r\n";
  std::string many;
  for (std::size_t i = 0; i <= kMostFormParts; ++i) many += begin + "\r\n\r\nx\r\n";
  for (const Hostile& one : {
           Hostile{"preamble\r\n" + begin + "\r\n\r\nx" + end, "does not begin with its boundary"},
           {begin + "\r\n\r\nx" + end + "more", "more behind the last boundary"},
           {begin + "\r\n\r\nx\r\n--XyZ \r\n", "not followed by the end of its line"},
           {begin + "; name=\"b\"\r\n\r\nx" + end, "name is given twice"},
           {begin + "; filename*=UTF-8''a\r\n\r\nx" + end, "filename* is not read"},
           {begin + "; filename=\"a\r\n\r\nx" + end, "no closing quote"},
           {"--XyZ\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\nx" + end, "form-data wanted"},
           {"--XyZ\r\nContent-Disposition: form-data\r\n\r\nx" + end, "has no name"},
           {"--XyZ\r\nContent-Type: text/plain\r\n\r\nx" + end, "no Content-Disposition"},
           {begin + "\r\nContent-Disposition: form-data; name=b\r\n\r\nx" + end, "two Content-Disposition"},
           {begin + "\r\nContent-Transfer-Encoding: base64\r\n\r\nx" + end, "binary wanted"},
           {begin + "\r\n folded: x\r\n\r\nx" + end, "no header of a part"},
           {begin + "\r\nX: " + std::string(kMostPartHeadBytes, 'x') + "\r\n\r\nx" + end, "more than 4096 bytes"},
           {"--XyZ\r\nContent-Disposition: form-data; name=\"\xff\"\r\n\r\nx" + end, "no UTF-8"},
           {many + "--XyZ--", "more than 16 fields"},
       }) {
    const auto form = read_form(kFormType, one.body);
    ASSERT_FALSE(form) << one.words;
    EXPECT_NE(form.error().message.find(one.words), std::string::npos) << form.error().message;
  }
}

}  // namespace
}  // namespace zinc_rt::server
