#include "tools/vramctl/orders.hpp"

#include <cstdint>
#include <cstdio>

#include "allocator/protocol/messages.hpp"
#include "policies/file/values.hpp"
#include "tools/vramctl/daemon.hpp"
#include "tools/vramctl/format.hpp"

namespace vramd::ctl {
namespace {

using protocol::Status;

int tell(const std::string& what, const std::string& remedy) {
  std::fprintf(stderr, "vramctl: %s\n  %s\n", what.c_str(), remedy.c_str());
  return kFinding;
}

// What a refusal means; empty when the order was carried out.
int judge(Status status, std::uint64_t session) {
  switch (status) {
    case Status::ok: return kOk;
    case Status::refused:
      return tell("not for this user to order", session == 0 ? "root and the daemon's own user may: sudo vramctl ..."
                                                             : "root, the daemon's own user and the session's own may");
    case Status::no_device:
      return tell(session == 0 ? "the daemon has no such GPU" : "there is no such session or GPU", "vramctl status lists them");
    case Status::malformed:
      return tell("the policy file has errors; the old policy holds", "vramctl policy check FILE names them");
    default: return tell("the daemon does not know the order", "use vramctl and vramd of the same version");
  }
}

// Sends the order; the reply when it was carried out, else says why not and returns the exit code in `code`.
std::optional<protocol::OrderReply> carry_out(const std::string& socket, const protocol::Order& order, int& code) {
  const auto reply = order_daemon(socket_path(socket), order);
  if (!reply) {
    code = tell(reply.error().what, reply.error().remedy);
    return std::nullopt;
  }
  code = judge(reply->header.status, order.session);
  return code == kOk ? std::optional(*reply) : std::nullopt;
}

}  // namespace

int trim(const TrimOptions& options) {
  auto order = protocol::make<protocol::Order>(1);
  order.verb = protocol::Verb::trim;
  order.session = options.session;
  if (options.gpu >= 0) order.device = static_cast<std::uint32_t>(options.gpu);
  int code = kOk;
  if (const auto reply = carry_out(options.socket, order, code))
    std::printf("%s\n", reply->bytes == UINT64_MAX ? "what it held idle is in the pool now"
                                                   : (size_text(reply->bytes) + " went back to the driver").c_str());
  return code;
}

int limit(const LimitOptions& options) {
  auto order = protocol::make<protocol::Order>(1);
  order.verb = protocol::Verb::limit;
  order.session = options.session;
  order.bytes = UINT64_MAX;
  if (options.size != "policy") order.bytes = policy::check_amount(options.size)->bytes;  // checked by the command line
  int code = kOk;
  if (carry_out(options.socket, order, code)) {
    std::printf("session %llu: %s\n", static_cast<unsigned long long>(options.session),
                options.size == "policy" ? "the policy's limit holds again"
                                         : ("at most " + size_text(order.bytes) + " on each GPU").c_str());
  }
  return code;
}

int reload(const ReloadOptions& options) {
  auto order = protocol::make<protocol::Order>(1);
  order.verb = protocol::Verb::reload;
  int code = kOk;
  if (carry_out(options.socket, order, code))
    std::printf("the policy file has been read again; limits hold for later requests\n");
  return code;
}

}  // namespace vramd::ctl
