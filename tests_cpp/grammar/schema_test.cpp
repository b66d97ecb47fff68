// JSON Schema: what is accepted, what is not, and what is refused by name.
#include "tests_cpp/grammar/grammar_fixture.h"

namespace zinc_rt::grammar {
namespace {

TEST(Schema, Scalars) {
  const Grammar any = schema(R"({"type": ["integer", "null", "boolean"]})");
  for (const char* good : {"0", "-0", "-12", "907", "null", "true", "false"}) EXPECT_TRUE(accepts(any, good)) << good;
  for (const char* bad : {"", "01", "-", "1.0", "1e3", "nul", "\"a\"", " 1", "1 ", "{}", "truefalse"})
    EXPECT_FALSE(accepts(any, bad)) << bad;
  const Grammar number = schema(R"({"type": "number"})");
  for (const char* good : {"0", "-0.0", "1.5", "1e3", "1E+3", "0.5e-03"}) EXPECT_TRUE(accepts(number, good)) << good;
  for (const char* bad : {".5", "1.", "1e", "+1", "00.5"}) EXPECT_FALSE(accepts(number, bad)) << bad;
}

TEST(Schema, Strings) {
  const Grammar any = schema(R"({"type": "string"})");
  for (const char* good : {"\"\"", "\"a b\"", "\"\\n\\\"\\\\\"", "\"\\u0001\"", "\"\\u001F\\u007f\"", "\"é\u2028😀\""})
    EXPECT_TRUE(accepts(any, good)) << good;
  for (const char* bad :
       {"\"", "\"a\nb\"", "\"\\/\"", "\"\\u0041\"", "\"\\u0022\"", "\"\x7f\"", "\"\xff\"", "\"\xed\xa0\x80\""})
    EXPECT_FALSE(accepts(any, bad)) << bad;
  const Grammar two = schema(R"({"type": "string", "minLength": 1, "maxLength": 2})");
  for (const char* good : {"\"a\"", "\"é😀\"", "\"\\n\\n\"", "\"\\u0001b\""}) EXPECT_TRUE(accepts(two, good)) << good;
  for (const char* bad : {"\"\"", "\"abc\"", "\"\\n\\n\\n\""}) EXPECT_FALSE(accepts(two, bad)) << bad;
}

TEST(Schema, PatternsAreFoundAnywhereUnlessAnchored) {
  const Grammar found = schema(R"({"type": "string", "pattern": "b+"})");
  EXPECT_TRUE(accepts(found, "\"abc\""));
  EXPECT_TRUE(accepts(found, "\"b\""));
  EXPECT_FALSE(accepts(found, "\"ac\""));
  const Grammar whole = schema(R"({"type": "string", "pattern": "^(?:a|b\\\\)$"})");
  EXPECT_TRUE(accepts(whole, "\"a\""));
  EXPECT_TRUE(accepts(whole, "\"b\\\\\""));
  EXPECT_FALSE(accepts(whole, "\"ab\""));
  const Grammar ends = schema(R"({"type": "string", "pattern": "^a|b$"})");
  EXPECT_TRUE(accepts(ends, "\"axx\""));
  EXPECT_TRUE(accepts(ends, "\"xxb\""));
  EXPECT_FALSE(accepts(ends, "\"xax\""));
  const Grammar both = schema(R"({"type": "string", "pattern": "^[a-z]*$", "minLength": 2, "maxLength": 3})");
  EXPECT_TRUE(accepts(both, "\"ab\""));
  EXPECT_FALSE(accepts(both, "\"a\""));
  EXPECT_FALSE(accepts(both, "\"abcd\""));
  EXPECT_FALSE(accepts(both, "\"aB\""));
}

TEST(Schema, NumberRanges) {
  const auto check = [](std::string_view text, std::initializer_list<const char*> good,
                        std::initializer_list<const char*> bad) {
    const Grammar made = schema(text);
    for (const char* one : good) EXPECT_TRUE(accepts(made, one)) << text << " " << one;
    for (const char* one : bad) EXPECT_FALSE(accepts(made, one)) << text << " " << one;
  };
  check(R"({"type": "integer", "minimum": -5, "maximum": 12})", {"-5", "-1", "0", "-0", "9", "10", "12"},
        {"-6", "13", "20", "-10", "00", "1.0"});
  check(R"({"type": "integer", "exclusiveMinimum": 0})", {"1", "9", "10", "100"}, {"0", "-1", "-0"});
  check(R"({"type": "number", "minimum": 0.5, "maximum": 2.5})", {"0.5", "0.50", "0.51", "1", "2.5", "2.500", "2.49"},
        {"0.4", "0.49", "2.51", "3", "0", "-1", "1e0"});
  check(R"({"type": "number", "exclusiveMaximum": 0})", {"-0.1", "-1", "-0.001"}, {"0", "-0", "0.1", "-0.0"});
  check(R"({"type": "integer", "minimum": 1.5, "maximum": 1e2})", {"2", "99", "100"}, {"1", "101"});
  check(R"({"type": "integer", "multipleOf": 7, "minimum": 10})", {"14", "70", "700007"}, {"7", "15", "71"});
  check(R"({"type": "number", "multipleOf": 0.01})", {"1", "1.5", "1.25", "-3.10"}, {"1.255", "1e1"});
  check(R"({"type": "number", "multipleOf": 2})", {"4", "-2", "0"}, {"3", "4.0"});
}

TEST(Schema, RangesAgreeWithArithmetic) {
  for (const int low : {-120, -9, 0, 7, 99, 101}) {
    for (const int high : {-100, -9, 0, 8, 100, 250}) {
      if (low > high) continue;
      const Grammar made = schema(fmt::format(R"({{"type": "integer", "minimum": {}, "maximum": {}}})", low, high));
      for (int n = -260; n <= 260; ++n) EXPECT_EQ(accepts(made, std::to_string(n)), low <= n && n <= high) << n;
    }
  }
}

TEST(Schema, ObjectsHaveTheirMembersInOrder) {
  const Grammar made =
      schema(R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}, "c": {"type": "null"}},
                                  "required": ["b"]})");
  for (const char* good : {R"({"a":1,"b":2})", R"({"b":2})", R"({ "b" : [1, {"x":null}] , "c" : null })",
                           R"({"b":2,"d":3,"e":4})", R"({"b":"x","c":null,"\n":0})"})
    EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad :
       {"{}", R"({"a":1})", R"({"b":2,"a":3})", R"({"b":2,})", R"({,"b":2})", R"({"a":1 "b":2})", R"({"c":null,"b":1})",
        R"({"b":1,"c":2})", R"({"b":1,"b":1})", R"({"b":1,"\u0062":1})", R"({"b":1)"})
    EXPECT_FALSE(accepts(made, bad)) << bad;
  const Grammar closed = schema(R"({"type": "object", "properties": {"a": {}}, "additionalProperties": false})");
  EXPECT_TRUE(accepts(closed, "{}"));
  EXPECT_TRUE(accepts(closed, R"({"a":0})"));
  EXPECT_FALSE(accepts(closed, R"({"b":0})"));
  const Grammar typed =
      schema(R"({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}})");
  EXPECT_TRUE(accepts(typed, R"({"a":"x","b":1,"c":2})"));
  EXPECT_FALSE(accepts(typed, R"({"b":"x"})"));
  EXPECT_FALSE(accepts(typed, R"({"b":1,"a":2})"));
}

TEST(Schema, PatternPropertiesAndNames) {
  const Grammar made =
      schema(R"({"type": "object", "patternProperties": {"^n": {"type": "integer"}, "s$": {"type": "string"}},
                                  "additionalProperties": {"type": "null"}})");
  for (const char* good : {"{}", R"({"n1":1})", R"({"as":"x"})", R"({"x":null})", R"({"n":1,"s":"","x":null})"})
    EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {R"({"n1":"x"})", R"({"ns":1})", R"({"ns":"x"})", R"({"x":1})"})
    EXPECT_FALSE(accepts(made, bad)) << bad;
  const Grammar named = schema(R"({"type": "object", "propertyNames": {"maxLength": 2, "pattern": "^a"}})");
  EXPECT_TRUE(accepts(named, R"({"a":1,"ab":2})"));
  EXPECT_FALSE(accepts(named, R"({"abc":1})"));
  EXPECT_FALSE(accepts(named, R"({"b":1})"));
}

TEST(Schema, Lists) {
  const Grammar made = schema(R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})");
  for (const char* good : {"[1]", "[1,2]", "[ 1 , 2 , 3 ]"}) EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"[]", "[1,]", "[1,2,3,4]", "[\"a\"]", "[1", "[,1]"}) EXPECT_FALSE(accepts(made, bad)) << bad;
  const Grammar tuple =
      schema(R"({"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "items": false})");
  for (const char* good : {"[]", "[\"a\"]", "[\"a\",null]"}) EXPECT_TRUE(accepts(tuple, good)) << good;
  for (const char* bad : {"[null]", "[\"a\",null,1]"}) EXPECT_FALSE(accepts(tuple, bad)) << bad;
  const Grammar many = schema(R"({"type": "array", "items": {}, "minItems": 10000, "maxItems": 10000})");
  std::string ten_thousand = "[0";
  for (int i = 1; i < 10000; ++i) ten_thousand += ",0";
  EXPECT_FALSE(accepts(many, "[0]"));
  EXPECT_TRUE(accepts(many, ten_thousand + "]"));
  EXPECT_FALSE(accepts(many, ten_thousand + ",0]"));
}

TEST(Schema, KeywordsBindTheirTypeAlone) {
  const Grammar made = schema(R"({"minimum": 3, "maxLength": 1, "required": ["a"]})");
  for (const char* good : {"3", "\"x\"", "null", "[1]", R"({"a":0})"}) EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"2", "\"xy\"", "{}"}) EXPECT_FALSE(accepts(made, bad)) << bad;
}

TEST(Schema, ConstAndEnum) {
  const Grammar made = schema(R"({"enum": ["a", "ab", 1.0, null, {"x": [1, "y"]}, "é\n"]})");
  for (const char* good : {"\"a\"", "\"ab\"", "1", "null", R"({"x":[1,"y"]})", R"({ "x" : [ 1, "y" ] })", "\"é\\n\""})
    EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"\"b\"", "\"abc\"", "1.0", "2", R"({"x":[1]})"}) EXPECT_FALSE(accepts(made, bad)) << bad;
  const Grammar fitted =
      schema(R"({"enum": ["a", 1, 20, "long"], "type": ["string", "integer"], "maxLength": 1, "minimum": 5})");
  EXPECT_TRUE(accepts(fitted, "\"a\""));
  EXPECT_TRUE(accepts(fitted, "20"));
  EXPECT_FALSE(accepts(fitted, "1"));
  EXPECT_FALSE(accepts(fitted, "\"long\""));
  EXPECT_TRUE(accepts(schema(R"({"const": "\u0001\u007f"})"), "\"\\u0001\\u007F\""));
  EXPECT_TRUE(accepts(schema(R"({"const": [[], {}]})"), "[[],{}]"));
}

TEST(Schema, CombinedSchemas) {
  const Grammar any =
      schema(R"({"type": "object", "properties": {"k": {}}, "required": ["k"], "additionalProperties": false,
                                 "anyOf": [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"type": "string"}}}]})");
  EXPECT_TRUE(accepts(any, R"({"k":1})"));
  EXPECT_TRUE(accepts(any, R"({"k":"x"})"));
  EXPECT_FALSE(accepts(any, R"({"k":2})"));
  const Grammar all = schema(R"({"allOf": [{"type": "object", "properties": {"a": {"minimum": 3}}, "required": ["a"]},
                                           {"properties": {"a": {"type": "integer", "maximum": 5}, "b": {"type": "null"}}}]})");
  EXPECT_TRUE(accepts(all, R"({"a":3,"b":null})"));
  EXPECT_TRUE(accepts(all, R"({"a":5})"));
  EXPECT_FALSE(accepts(all, R"({"a":6})"));
  EXPECT_FALSE(accepts(all, R"({"a":"x"})"));
  EXPECT_FALSE(accepts(all, R"({})"));
  const Grammar one = schema(R"({"oneOf": [{"type": "string"}, {"type": "integer"}]})");
  EXPECT_TRUE(accepts(one, "1"));
  const Grammar tagged = schema(R"({"oneOf": [
      {"type": "object", "properties": {"t": {"const": "a"}, "x": {"type": "integer"}}, "required": ["t", "x"]},
      {"type": "object", "properties": {"t": {"enum": ["b", "c"]}}, "required": ["t"]}]})");
  EXPECT_TRUE(accepts(tagged, R"({"t":"a","x":1})"));
  EXPECT_TRUE(accepts(tagged, R"({"t":"c"})"));
  EXPECT_FALSE(accepts(tagged, R"({"t":"a"})"));
}

TEST(Schema, References) {
  const Grammar tree = schema(R"({"$defs": {"n/a": {"type": "object", "properties": {"v": {"type": "integer"},
      "next": {"anyOf": [{"$ref": "#/$defs/n~1a"}, {"type": "null"}]}}, "required": ["v", "next"], "additionalProperties": false}},
      "$ref": "#/$defs/n~1a"})");
  EXPECT_TRUE(accepts(tree, R"({"v":1,"next":{"v":2,"next":null}})"));
  EXPECT_FALSE(accepts(tree, R"({"v":1,"next":{"v":2}})"));
  const Grammar self = schema(R"({"type": "array", "items": {"$ref": "#"}})");
  EXPECT_TRUE(accepts(self, "[[],[[]]]"));
  EXPECT_FALSE(accepts(self, "[1]"));
}

TEST(Schema, Formats) {
  const auto check = [](const char* format, std::initializer_list<const char*> good,
                        std::initializer_list<const char*> bad) {
    const Grammar made = schema(fmt::format(R"({{"type": "string", "format": "{}"}})", format));
    for (const char* one : good) EXPECT_TRUE(accepts(made, fmt::format("\"{}\"", one))) << format << " " << one;
    for (const char* one : bad) EXPECT_FALSE(accepts(made, fmt::format("\"{}\"", one))) << format << " " << one;
  };
  check("date", {"2024-02-29", "2000-02-29", "2023-12-31", "1999-04-30"},
        {"2023-02-29", "1900-02-29", "2024-02-30", "2024-13-01", "2024-04-31", "24-01-01"});
  check("time", {"12:00:00Z", "23:59:59.123+02:00", "00:00:00z"}, {"24:00:00Z", "12:00:00", "12:60:00Z", "1:00:00Z"});
  check("date-time", {"2024-01-01T00:00:00Z", "2024-02-29t23:59:59.5-08:00"}, {"2024-01-01 00:00:00Z", "2024-01-01"});
  check("uuid", {"2EB8AA08-aa98-11EA-B4AA-73B441D16380"},
        {"2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380"});
  check("email", {"a@b", "a.b+c@d-e.org"}, {"a", "@b", "a..b@c", ".a@b", "a@-b"});
  check("ipv4", {"0.0.0.0", "255.1.20.199"}, {"256.0.0.1", "1.2.3", "01.2.3.4"});
  check("ipv6",
        {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2::7:8", "1:2:3:4:5:6:1.2.3.4", "1::8",
         "1:2:3:4:5:6:7::"},
        {"1:2:3:4:5:6:7", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", ":1", "1:", "1:2:3:4:5:6:7:8::"});
  check("uri", {"http://a", "a:", "mailto:x@y", "http://u:p@h:80/p/q?r=1#s", "urn:a:b"},
        {"", "//a", "a b:", "http://a b", "1:a"});
  check("hostname", {"a", "a-b.c1"}, {"-a", "a_b", "a..b"});
  check("duration", {"P1D", "P1Y2M3DT4H5M6S", "PT1M", "P2W"}, {"P", "1D", "P1H", "PT", "P1W2D"});
}

TEST(Schema, WhatIsNotEnforcedIsRefusedByPointer) {
  const auto refused = [](std::string_view text, std::string_view pointer) {
    const std::string error = schema_error(text);
    EXPECT_TRUE(error.starts_with("[schema] ") && error.find(pointer) != std::string::npos) << text << " -> " << error;
  };
  refused(R"({"properties": {"a/b": {"not": {"type": "null"}}}})", "/properties/a~1b/not:");
  refused(R"({"items": {"if": {}, "then": {"minimum": 1}}})", "/items/if:");
  for (const char* keyword : {"contains", "dependentSchemas", "dependentRequired", "dependencies", "$dynamicRef",
                              "$recursiveRef", "unevaluatedItems", "unevaluatedProperties", "propertyDependencies"}) {
    if (std::string_view(keyword) == "propertyDependencies") continue;  // a later draft's: here it has no meaning
    refused(std::string(R"({"items": {")") + keyword + R"(": {"x": {"type": "null"}}}})",
            std::string("/items/") + keyword + ": this keyword is not enforced");
  }
  refused(R"({"anyOf": [{"uniqueItems": true}]})", "/anyOf/0/uniqueItems:");
  refused(R"({"type": "text"})", "/type:");
  refused(R"({"$ref": "http://example.com/x"})", "/$ref:");
  refused(R"({"$ref": "#/$defs/none"})", "$ref");
  refused(R"({"$ref": "#"})", "the root: this schema refers to itself");
  refused(
      R"({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"})",
      "itself");
  refused(R"({"oneOf": [{"minimum": 1}, {"maximum": 3}]})", "/oneOf:");
  refused(R"({"oneOf": [{"const": [1]}, {"type": "array"}]})", "/oneOf:");
  refused(R"({"oneOf": [{"const": {"a": 1}}, {"enum": [2, {"a": 1}]}]})", "/oneOf:");
  refused(R"re({"pattern": "(?<=a)b"})re", "/pattern:");
  refused(R"({"pattern": "\\bword"})", "/pattern:");
  refused(R"({"format": 5})", "/format:");
  refused(R"({"multipleOf": 0.12345678})", "/multipleOf:");
  refused(R"({"minLength": -1})", "/minLength:");
  refused(R"({"minProperties": 1})", "minProperties:");
  refused(R"({"items": [{}], "prefixItems": [{}]})", "/items:");
  refused(R"({"properties": [1]})", "/properties:");
  refused(R"([1])", "the root:");
  EXPECT_EQ(schema_error("{"), "[schema] byte 2: this is not JSON");
  EXPECT_EQ(schema_error(R"({"a": 1, "a": 2})"), "[schema] the key \"a\" is given twice in one object");
  EXPECT_EQ(schema_error("false"), "[grammar] no text at all fits");
  EXPECT_EQ(schema_error(R"({"type": "string", "const": 1})"), "[grammar] no text at all fits");
  EXPECT_EQ(schema_error(R"({"type": "object", "properties": {"a": false}, "required": ["a"]})"),
            "[grammar] no text at all fits");
}

TEST(Schema, AnnotationsConstrainNothing) {
  const Grammar made =
      schema(R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/a",
      "title": "t", "description": "d", "default": 1, "examples": [1], "$comment": "c", "deprecated": true, "readOnly": true,
      "type": "integer", "$defs": {"unused": {"not": {}}}})");
  EXPECT_TRUE(accepts(made, "5"));
}

// The standard says so of names that it does not know, and of formats.
TEST(Schema, NamesAndFormatsThatAreNotKnownConstrainNothing) {
  for (const char* unknown :
       {R"("x-order": 3)", R"("nullable": true)", R"("typo": {"type": "null"})", R"("discriminator": {"mapping": {}})",
        R"("xml": {"name": "n"})", R"("externalDocs": {})", R"("id": "Number")", R"("enumNames": ["a"])",
        R"("$anchor": "a")", R"("format": "int64")", R"("format": "even")", R"("not": false)", R"("if": false)",
        R"("then": false)", R"("unevaluatedProperties": {})", R"("minContains": 2)", R"("dependentRequired": {})"}) {
    const Grammar made = schema(std::string(R"({"type": "integer", )") + unknown + "}");
    EXPECT_TRUE(accepts(made, "5")) << unknown;
    EXPECT_FALSE(accepts(made, "null")) << unknown;
    EXPECT_FALSE(accepts(made, "\"5\"")) << unknown;
  }
  for (const char* format :
       {"password", "binary", "path", "json-pointer", "uri-reference", "regex", "idn-email", "my own"})
    EXPECT_TRUE(accepts(schema(std::string(R"({"type": "string", "format": ")") + format + "\"}"), R"("any text")"));
}

TEST(Schema, NotAnythingIsNothing) {
  const Grammar made = schema(R"({"type": "object", "properties": {"a": {"not": {}}, "b": {"not": true}, "c": {}}})");
  EXPECT_TRUE(accepts(made, R"({"c":1})"));
  EXPECT_FALSE(accepts(made, R"({"a":1})"));
  EXPECT_FALSE(accepts(made, R"({"b":1})"));
}

TEST(Schema, ListsOfSchemasInItemsAreThoseOfEarlierDrafts) {
  const Grammar open =
      schema(R"({"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "minItems": 2})");
  EXPECT_TRUE(accepts(open, R"([1,"a"])"));
  EXPECT_TRUE(accepts(open, R"([1,"a",null])"));
  EXPECT_FALSE(accepts(open, R"(["a",1])"));
  const Grammar closed = schema(R"({"type": "array", "items": [{"type": "integer"}], "additionalItems": false})");
  EXPECT_TRUE(accepts(closed, "[1]"));
  EXPECT_FALSE(accepts(closed, "[1,2]"));
  const Grammar rest = schema(
      R"({"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}, "minItems": 2})");
  EXPECT_TRUE(accepts(rest, "[1,null]"));
  EXPECT_FALSE(accepts(rest, "[1,2]"));
  // Beside a schema for all items it says nothing.
  EXPECT_TRUE(accepts(schema(R"({"type": "array", "items": {"type": "integer"}, "additionalItems": false})"), "[1,2]"));
}

TEST(Schema, ADiscriminatorIsWrittenAndTellsBranchesApart) {
  const Grammar made =
      schema(R"({"discriminator": {"propertyName": "kind"}, "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
    "$defs": {"a": {"type": "object", "properties": {"kind": {"const": "a", "default": "a"}, "x": {"type": "integer"}}},
              "b": {"type": "object", "properties": {"kind": {"enum": ["b", "c"], "default": "b"}}}}})");
  for (const char* good : {R"({"kind":"a"})", R"({"kind":"a","x":1})", R"({"kind":"c"})"})
    EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"{}", R"({"x":1})", R"({"kind":"d"})"}) EXPECT_FALSE(accepts(made, bad)) << bad;
  // Without one the branches have {} in common.
  EXPECT_NE(schema_error(R"({"oneOf": [{"type": "object", "properties": {"k": {"const": 1}}},
                                        {"type": "object", "properties": {"k": {"const": 2}}}]})"),
            "");
}

TEST(Schema, WhiteSpace) {
  const Grammar eight = schema(R"({"type": "array"})");
  EXPECT_TRUE(accepts(eight, "[        ]"));
  EXPECT_FALSE(accepts(eight, "[         ]"));
  const Grammar none = schema(R"({"type": "array"})", {{}, {0, {}}});
  EXPECT_TRUE(accepts(none, "[1,2]"));
  EXPECT_FALSE(accepts(none, "[1, 2]"));
  const Grammar one = schema(R"({"type": "array"})", {{}, {8, " ?"}});
  EXPECT_TRUE(accepts(one, "[1, 2]"));
  EXPECT_FALSE(accepts(one, "[1,  2]"));
  EXPECT_FALSE(accepts(one, "[1,\n2]"));
}

TEST(Schema, Strict) {
  const auto error = [](std::string_view text) {
    const auto ok = check_strict(text);
    return ok ? std::string() : ok.error().message;
  };
  EXPECT_EQ(
      error(
          R"({"type": "object", "properties": {"a": {"type": "object", "properties": {}, "additionalProperties": false}},
                      "required": ["a"], "additionalProperties": false})"),
      "");
  EXPECT_EQ(error(R"({"type": "string"})"), "[schema] the root: its type must be \"object\" in strict mode");
  EXPECT_EQ(error(R"({"type": "object", "properties": {"a": {}}, "additionalProperties": false})"),
            "[schema] /required: \"a\" is missing; strict mode wants all properties");
  EXPECT_EQ(
      error(
          R"({"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}]}}, "required": ["a"], "additionalProperties": false})"),
      "[schema] /properties/a/anyOf/0: additionalProperties must be false in strict mode");
}

}  // namespace
}  // namespace zinc_rt::grammar
