// Bad policy files and the exact messages they give: what a person reads is part of the interface.
#include <string>
#include <vector>

#include "policies/file/policy.hpp"
#include "tests/support/catch.hpp"

namespace {

struct BadFile {
  std::string text;
  std::vector<std::string> messages;
};

std::vector<std::string> messages_of(const std::string& text) {
  std::vector<std::string> messages;
  for (const auto& diagnostic : vramd::policy::parse(text).diagnostics) messages.push_back(diagnostic.text("f"));
  return messages;
}

void require_messages(const std::vector<BadFile>& table) {
  for (const BadFile& bad : table) {
    INFO(bad.text);
    CHECK(messages_of(bad.text) == bad.messages);
    CHECK_FALSE(vramd::policy::parse(bad.text).policy.has_value());
  }
}

// A file that is fine but for the value of pool.retain.
std::string retain(const std::string& value) { return R"({"version":1,"pool":{"retain":)" + value + "}}"; }

const std::string kShareExample = R"(write a size such as "12GiB" or a percentage such as "75%")";

}  // namespace

TEST_CASE("Policy file: a syntax error is explained where it stands") {
  require_messages({
      {R"()", {R"(f:1:1: error: the file is empty; the smallest policy is {"version": 1})"}},
      {R"({)", {R"(f:1:2: error: the file ends too early; close what line 1 opens)"}},
      {R"([])", {R"(f:1:1: error: a list is not an object { ... }; write {"key": value})"}},
      {R"({"version": 1,})", {R"(f:1:14: error: a comma after the last entry; remove it)"}},
      {R"({"version": 1,, "mode": "pool"})", {R"(f:1:15: error: two commas; remove one)"}},
      {R"({"version": 1 "mode": "pool"})", {R"(f:1:15: error: no comma before this; write , between entries)"}},
      {R"({"version" 1})", {R"(f:1:12: error: version: no colon after a key; write : between key and value)"}},
      {R"({'version': 1})", {R"(f:1:2: error: single quotes; JSON keys stand in double quotes)"}},
      {R"({version: 1})", {R"(f:1:2: error: the key version has no quotes; write "version")"}},
      {R"({"version": 1, "metrics": {"sessions": True}})",
       {R"(f:1:40: error: metrics.sessions: unknown word True; JSON uses true)"}},
      {R"({"version": 1}})", {R"(f:1:15: error: text after the end of the policy; remove it: a file holds one { ... })"}},
      {R"({"version": 1} x)", {R"(f:1:16: error: text after the end of the policy; remove it: a file holds one { ... })"}},
      {R"({"version": 01})",
       {R"(f:1:13: error: 01 is no number of JSON; write digits without leading zeros or +, such as 0.5 or 12)",
        R"(f:1:13: error: version: 0 is no version that this program knows; write 1)"}},
      {R"({"version": 1e999})", {R"(f:1:13: error: version: 1e999 is too large for a number; write a smaller one)"}},
      {R"({"version": 1, "pool": {"retain": 12GiB}})",
       {R"(f:1:35: error: pool: 12GiB is no number; put a size or a time in quotes: "12GiB")"}},
      {R"({"version": 1, "pool": {"retain": .5}})",
       {R"(f:1:35: error: pool.retain: .5 is no number of JSON; write digits without leading zeros or +, such as 0.5 or 12)"}},
      {R"({"version": 1, "mode": "po
ol"})",
       {R"(f:1:24: error: mode: the string has no end on its line; close it with ")"}},
      {R"({"version": 1, "mode": "po\qol"})",
       {R"(f:1:27: error: mode: unknown escape "\q" in a string; write \\ for a backslash)"}},
      {R"({"version": 1, "mode": "\u12"})",
       {R"(f:1:25: error: mode: \u needs four hexadecimal digits; write for example \u00e9)"}},
      {R"({"version": 1, "mode": "pool)", {R"(f:1:24: error: mode: the string has no end; close it with ")"}},
      {R"({"version": 1, "mode": })", {R"(f:1:24: error: mode: unexpected "}"; a value belongs here)"}},
      {R"({"version": 1, /* x)", {R"(f:1:16: error: the comment has no end; close it with */)"}},
      {R"({"version": 1, "sessions": [{"match": {"any": true}]})",
       {R"(f:1:52: error: sessions[0]: unexpected "]"; write , or } here)"}},
      {R"({"version": 1,
  // a comment
  "mode": pool})",
       {R"(f:3:11: error: mode: unknown word pool; put text in double quotes)"}},
      {R"({"version": 1,
 "sessions": [
  {"match": {)",
       {R"(f:3:14: error: sessions[0].match: the file ends too early; close what line 3 opens)"}},
      {R"({"version": 1, "x": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[)",
       {R"(f:1:16: error: x: unknown key "x"; keys here are "$schema", "version", "mode", "pool", "sessions", "metrics", "moves", "host_memory", "staging", "policies" or "oom")",
        R"(f:1:52: error: nested deeper than 32 levels; a policy needs no more than 4)"}},
  });
}

TEST_CASE("Policy file: bytes that are no text are refused") {
  require_messages({
      {std::string("{\"version\": 1\0}", 15), {"f:1:14: error: a NUL byte; this is no text file; save the file as UTF-8 text"}},
      {"\xff\xfe{", {"f:1:1: error: saved as UTF-16; save the file as UTF-8"}},
      {"{\"version\": 1, \"mode\": \"\xff\"}", {"f:1:25: error: mode: not valid UTF-8; save the file as UTF-8"}},
      {std::string((1 << 20) + 1, ' '), {"f:1:1: error: larger than 1 MiB; a policy is a few KiB; is this the right file?"}},
  });
}

TEST_CASE("Policy file: keys that are unknown, twice, missing or out of place") {
  require_messages({
      {R"({})", {R"(f:1:1: error: version: missing; write "version": 1)"}},
      {R"({"version": 1, "pol": {}})", {R"(f:1:16: error: pol: unknown key "pol"; did you mean "pool"?)"}},
      {R"({"version":1,"sessions":[{"match":{"any":true},"limt":"1GiB"}]})",
       {R"(f:1:48: error: sessions[0].limt: unknown key "limt"; did you mean "limit"?)"}},
      {R"({"version":1,"pool":{"staging":{}}})",
       {R"(f:1:22: error: pool.staging: unknown key "staging" in pool; it is a top-level key: move it there)"}},
      {R"({"version":1,"retain":"5%"})",
       {R"(f:1:14: error: retain: unknown key "retain" at the top level; it belongs in "pool": move it there)"}},
      {R"({"version":1,"offload_optimizer":true})",
       {R"(f:1:14: error: offload_optimizer: unknown key "offload_optimizer"; write {"module": "optimizer-state"} in "policies")"}},
      {R"({"version":1,"colour":"red"})",
       {R"(f:1:14: error: colour: unknown key "colour"; keys here are "$schema", "version", "mode", "pool", "sessions", "metrics", "moves", "host_memory", "staging", "policies" or "oom")"}},
      {R"({"version":1,"metrics":{"é\n":1}})",
       {R"(f:1:25: error: metrics.é\x0a: unknown key "é\x0a"; keys here are "listen", "sessions" or "sessions_max")"}},
      {R"({"version":1,
 "mode":"pool",
 "mode":"off"})",
       {R"(f:3:2: error: mode: "mode" is given twice, first in line 2; keep one)"}},
      {R"({"version":1,"sessions":[{"limit":"1GiB","match":{"any":true}, "limit":"2GiB"}]})",
       {R"(f:1:64: error: sessions[0].limit: "limit" is given twice, first in line 1; keep one)"}},
  });
}

TEST_CASE("Policy file: sizes") {
  require_messages({
      {retain(R"("12GB")"),
       {R"(f:1:31: error: pool.retain: unknown unit in "12GB"; write "12GiB" (units are B, KiB, MiB, GiB and TiB, steps of 1024))"}},
      {retain(R"("12g")"),
       {R"(f:1:31: error: pool.retain: unknown unit in "12g"; write "12GiB" (units are B, KiB, MiB, GiB and TiB, steps of 1024))"}},
      {retain(R"("32 GB")"), {R"(f:1:31: error: pool.retain: a space in "32 GB"; write "32GiB")"}},
      {retain(R"(" 12GiB")"), {R"(f:1:31: error: pool.retain: a space in " 12GiB"; write "12GiB")"}},
      {retain(R"("12XiB")"), {R"(f:1:31: error: pool.retain: unknown unit "XiB"; units are B, KiB, MiB, GiB, TiB and %)"}},
      {retain(R"("150%")"), {R"(f:1:31: error: pool.retain: "150%" is more than 100 %; write at most "100%")"}},
      {retain(R"(-1)"), {R"(f:1:31: error: pool.retain: -1 is negative; )" + kShareExample}},
      {retain(R"("-1")"), {R"(f:1:31: error: pool.retain: "-1" is negative; )" + kShareExample}},
      {retain(R"(1e9)"), {R"(f:1:31: error: pool.retain: 1e9 is not written as a whole number of bytes; write 1000000000)"}},
      {retain(R"("1e9")"), {R"(f:1:31: error: pool.retain: "1e9" is written with an exponent; write 1000000000)"}},
      {retain(R"(0.5)"), {R"(f:1:31: error: pool.retain: 0.5 is not written as a whole number of bytes; )" + kShareExample}},
      {retain(R"("1.5")"),
       {R"~(f:1:31: error: pool.retain: "1.5" has no unit; write a unit, such as "1.5GiB" (or "B" for bytes))~"}},
      {retain(R"("10")"),
       {R"~(f:1:31: error: pool.retain: "10" has no unit; write a unit, such as "10GiB" (or "B" for bytes))~"}},
      {retain(R"("")"), {R"(f:1:31: error: pool.retain: empty; )" + kShareExample}},
      {retain(R"("half")"), {R"(f:1:31: error: pool.retain: "half" does not start with a number; )" + kShareExample}},
      {retain(R"("9999999TiB")"), {R"(f:1:31: error: pool.retain: "9999999TiB" is more than 1 EiB; )" + kShareExample}},
      {retain(R"(99999999999999999999999)"),
       {R"(f:1:31: error: pool.retain: 99999999999999999999999 is more than 1 EiB; )" + kShareExample}},
      {retain(R"(null)"), {R"(f:1:31: error: pool.retain: null is not a size or a percentage; )" + kShareExample}},
      {retain(R"([])"), {R"(f:1:31: error: pool.retain: a list is not a size or a percentage; )" + kShareExample}},
  });
}

TEST_CASE("Policy file: other values") {
  require_messages({
      {R"({"version": 2})", {R"(f:1:13: error: version: 2 is no version that this program knows; write 1)"}},
      {R"({"version":1,"mode":"pol"})", {R"(f:1:21: error: mode: "pol" is not known here; did you mean "pool"?)"}},
      {R"({"version":1,"mode":"fast"})",
       {R"(f:1:21: error: mode: "fast" is not known here; write "off", "observe", "pool" or "full")"}},
      {R"({"version":1,"mode":true})",
       {R"(f:1:21: error: mode: true is not known here; write "off", "observe", "pool" or "full")"}},
      {R"({"version":1,"pool":true})", {R"(f:1:21: error: pool: true is not an object { ... }; write {"key": value})"}},
      {R"({"version":1,"pool":{"garbage_collection_threshold":95}})",
       {R"(f:1:22: warning: pool.garbage_collection_threshold: not acted on by this version; it is only checked)",
        R"(f:1:53: error: pool.garbage_collection_threshold: 95 is outside 0 to 1; write 0.95)"}},
      {R"({"version":1,"metrics":{"listen":"9845"}})",
       {R"(f:1:34: error: metrics.listen: "9845" has no port; write ADDRESS:PORT such as "127.0.0.1:9845", or "off")"}},
      {R"({"version":1,"metrics":{"listen":"::1:9845"}})",
       {R"(f:1:34: error: metrics.listen: an IPv6 address without brackets in "::1:9845"; write for example "[::1]:9845")"}},
      {R"({"version":1,"metrics":{"listen":"h:99999"}})",
       {R"(f:1:34: error: metrics.listen: "99999" is no port; write a port from 0 to 65535; 0 takes any free one)"}},
      {R"({"version":1,"metrics":{"listen":9845}})",
       {R"(f:1:34: error: metrics.listen: 9845 is not an address; write "127.0.0.1:9845", or "off")"}},
      {R"({"version":1,"staging":{"enabled":"yes","slots":1e1,"threads":17}})",
       {R"(f:1:14: warning: staging: not acted on by this version; it is only checked)",
        R"(f:1:35: error: staging.enabled: "yes" is not known here; write "auto", true or false)",
        R"(f:1:49: error: staging.slots: 1e1 is not written as a whole number; write 10)",
        R"(f:1:63: error: staging.threads: 17 is outside 1 to 16; write a whole number from 1 to 16 or "auto")"}},
      {R"({"version":1,"moves":{"max_pause":5,"max_drain":"1 s","max_bandwidth":"10%"}})",
       {R"(f:1:14: warning: moves: not acted on by this version; it is only checked)",
        R"(f:1:35: error: moves.max_pause: 5 has no unit of time; write "5s" for seconds)",
        R"(f:1:49: error: moves.max_drain: a space in "1 s"; write "1s")",
        R"(f:1:71: error: moves.max_bandwidth: "10%" is a percentage, of nothing in particular; write a size such as "64MiB")"}},
      {R"({"version":1,"policies":[{"module":"idle_session"},{"module":"guard","after":"5s"},{},5]})",
       {R"(f:1:14: warning: policies: not acted on by this version; it is only checked)",
        R"(f:1:36: error: policies[0].module: "idle_session" is not known here; did you mean "idle-session"?)",
        R"(f:1:70: error: policies[1].after: unknown key "after"; keys here are "module", "enabled", "max_slowdown", "min_residency_iterations" or "pin_iterations")",
        R"(f:1:84: error: policies[2].module: missing; write "module": "idle-session", "optimizer-state", "activation", "cold-chunk", "guard" or "advisor")",
        R"(f:1:87: error: policies[3]: 5 is not an object { ... }; write {"module": "idle-session"})"}},
      {R"({"version":1,"oom":{"steps":["limbo","x"],"wait":"5sec","snapshot":1}})",
       {R"(f:1:14: warning: oom: not acted on by this version; it is only checked)",
        R"(f:1:38: error: oom.steps[1]: "x" is not known here; write "limbo", "cached", "daemon", "move_out" or "wait")",
        R"(f:1:50: error: oom.wait: unknown unit of time "sec"; units are us, ms, s, m and h)",
        R"(f:1:68: error: oom.snapshot: 1 is not true or false; write true or false without quotes)"}},
  });
}

TEST_CASE("Policy file: rules for sessions") {
  require_messages({
      {R"({"version":1,"sessions":{"match":{"any":true}}})",
       {R"(f:1:25: error: sessions: an object is not a list [ ... ]; write a list of rules, even for one)"}},
      {R"({"version":1,"sessions":[{"limit":"1GiB"}]})",
       {R"(f:1:26: error: sessions[0].match: missing; say which sessions, such as {"user": "alice"} or {"any": true})"}},
      {R"({"version":1,"sessions":[{"match":{}}]})",
       {R"(f:1:35: error: sessions[0].match: empty, so it is not clear which sessions are meant; write {"any": true} for all, or a field such as {"user": "alice"})"}},
      {R"({"version":1,"sessions":[{"match":{"any":false}}]})",
       {R"(f:1:42: error: sessions[0].match.any: false says nothing here; write true, or leave the key out)"}},
      {R"({"version":1,"sessions":[{"match":{"user":""}},{"match":{"user":5}}]})",
       {R"(f:1:43: error: sessions[0].match.user: empty, so it matches nothing; write a name, a pattern, or leave the key out)",
        R"(f:1:65: error: sessions[1].match.user: 5 is not text; write it in double quotes: "5")"}},
      {R"({"version":1,"sessions":[{"match":{"any":true},"limit":-1}]})",
       {R"(f:1:56: error: sessions[0].limit: -1 is negative; write a size such as "12GiB" or a percentage such as "75%", or leave "limit" out for none)"}},
      {R"({"version":1,"sessions":[{"match":{"any":true},"limit":"1GiB","reserve":"2GiB"}]})",
       {R"(f:1:73: error: sessions[0].reserve: more than the limit of the same rule; write at most the limit)"}},
      {R"({"version":1,"sessions":[{"match":{"any":true},"gpus":["GPU-1",-1,3,3,99]}]})",
       {R"(f:1:56: error: sessions[0].gpus[0]: "GPU-1": this version knows GPUs by index only; write the index that vramctl status shows)",
        R"(f:1:64: error: sessions[0].gpus[1]: -1 is no index of a GPU; write a whole number from 0 to 15)",
        R"(f:1:69: error: sessions[0].gpus[3]: 3 is listed twice; keep one)",
        R"(f:1:71: error: sessions[0].gpus[4]: 99 is no index of a GPU; write a whole number from 0 to 15)"}},
      {R"({"version":1,"sessions":[{"match":{"any":true},"gpus":[]}]})",
       {R"(f:1:55: error: sessions[0].gpus: empty, so the rule is about no GPU; leave the key out for all GPUs)"}},
      {R"({"version":1,"sessions":[{"match":{"any":true},"per":"jobs","priority":"high"}]})",
       {R"(f:1:54: error: sessions[0].per: "jobs" is not known here; did you mean "job"?)",
        R"(f:1:72: error: sessions[0].priority: "high" is not known here; write "batch", "normal" or "interactive")"}},
      {R"({"version":1,"sessions":[
 {"match":{"any":true}},
 {"match":{"user":"a"}}]})",
       {R"(f:3:2: error: sessions[1]: never reached, because the rule in line 2 matches every session; put {"any": true} last)"}},
      {R"({"version":1,"sessions":[
 {"match":{"any":true},"gpus":[0,1]},
 {"match":{"user":"a"},"gpus":[1]},
 {"match":{"user":"a"},"gpus":[2]}]})",
       {R"(f:3:2: error: sessions[1]: never reached, because the rule in line 2 matches every session; put {"any": true} last)"}},
  });
}

TEST_CASE("Policy file: everything that is wrong is said in one pass, in the order of the file") {
  require_messages({
      {R"({
  "mode": "pol",
  "pool": {"retain": "12GB", "retian": "5%"},
  "sessions": [
    {"match": {"any": true}, "limit": -1},
    {"match": {"user": "bob"}, "limit": "200%"}
  ],
  "metrics": {"listen": 1,}
})",
       {R"(f:2:11: error: mode: "pol" is not known here; did you mean "pool"?)",
        R"(f:3:22: error: pool.retain: unknown unit in "12GB"; write "12GiB" (units are B, KiB, MiB, GiB and TiB, steps of 1024))",
        R"(f:3:30: error: pool.retian: unknown key "retian"; did you mean "retain"?)",
        R"(f:5:39: error: sessions[0].limit: -1 is negative; write a size such as "12GiB" or a percentage such as "75%", or leave "limit" out for none)",
        R"(f:6:5: error: sessions[1]: never reached, because the rule in line 5 matches every session; put {"any": true} last)",
        R"(f:6:41: error: sessions[1].limit: "200%" is more than 100 %; write at most "100%")",
        R"(f:8:25: error: metrics.listen: 1 is not an address; write "127.0.0.1:9845", or "off")",
        R"(f:8:26: error: metrics: a comma after the last entry; remove it)"}},
  });
}
