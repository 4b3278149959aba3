// What sessions may ask and what they get: hello, requests, ends, limits. No sockets in here: packets come as
// bytes and go out through each session's Wire. Owned and used by the loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/clock.hpp"
#include "daemon/device.hpp"
#include "daemon/peer.hpp"
#include "daemon/session.hpp"
#include "daemon/snapshot.hpp"
#include "policies/file/policy.hpp"

namespace vramd {

inline constexpr std::size_t kMaxSessions = 256;
inline constexpr std::size_t kMaxSessionsPerUser = 64;
inline constexpr std::uint32_t kMaxWaiting = 64;        // requests of one session that wait for an answer
inline constexpr std::size_t kMaxWaitingStatus = 1024;  // requests for the status that wait for it
inline constexpr std::uint32_t kMaxViolations = 256;    // harmless nonsense of one session

// What the owner of a connection has to do after a packet. `drop` holds the reason, a metric's label.
struct Verdict {
  const char* drop = nullptr;
};

class Broker {
 public:
  Broker(std::vector<std::unique_ptr<Device>> devices, int driver_version, policy::Policy policy, std::uint64_t epoch);

  struct Greeting {
    protocol::HelloReply reply;
    bool keep = false;    // false: send the reply and close
    SessionId session{};  // none for admins
  };
  // The first packet of a connection, already decoded.
  Greeting hello(const protocol::Hello& hello, const Peer& peer, Wire wire);

  // The session of a greeting has got a line.
  void set_line(SessionId session, Line line);

  // Any later packet. Admins have no session: `wire` answers them.
  Verdict packet(SessionId session, const void* data, std::size_t size);
  Verdict admin_packet(const Wire& wire, unsigned uid, const void* data, std::size_t size);

  // The process of a session is gone, and its last packets are about to be read: nothing is granted to it any more.
  void process_ended(SessionId session);
  // The socket or the process of a session is gone, whichever comes first: the session is over, and nothing that it still
  // held is lent again. Does nothing when it was over before.
  void end(SessionId session);

  // Whether a session waits for so many answers that nothing more should be read from it.
  bool saturated(SessionId session) const;

  // Limits hold for later grants; nothing is taken from anybody.
  void set_policy(policy::Policy policy);
  const policy::Policy& policy() const { return policy_; }

  void refresh_devices();
  void fill(Snapshot& snapshot) const;
  // What StatusRequest is answered with; set by the owner, who knows the rest of the snapshot.
  std::function<std::string()> status_text;
  // Reads the policy file again; whether it is good. Set by the owner.
  std::function<bool()> reload;
  // Calls a function once after a time; set by the owner, who has the timers.
  std::function<void(Nanos, std::function<void()>)> call_after;

  // The answer of a device; wired up by whoever makes the devices.
  void answer_grant(SessionId session, std::uint32_t request, const GrantAnswer& answer);
  // Ends all sessions and devices. False when a device did not come to an end before the deadline.
  bool stop(Nanos deadline);

 private:
  Session* find(SessionId session);
  Device* device_of(Session& session, std::uint32_t index, protocol::Status& status);
  protocol::Status admit(const Peer& peer) const;
  void fill_device_table(const protocol::Hello& hello, protocol::HelloReply& reply, Session& session) const;
  void fill_limits(const protocol::Hello& hello, protocol::HelloReply& reply, Session& session);
  chunks::Limits limits_for(Session& session, const Device& device);
  chunks::DomainId domain_of(const Peer& peer);

  // In requests.cpp.
  Verdict on_grant(Session& session, const protocol::Grant& message);
  Verdict on_give_back(Session& session, const protocol::GiveBack& message);
  Verdict on_charge(Session& session, const protocol::Charge& message);
  Verdict on_memory_info(Session& session, const protocol::MemoryInfo& message);
  // Sessions other than `asking` that say they hold something idle on the device, most first, and how much.
  std::vector<std::pair<Session*, Bytes>> idle_holders(const Device& device, SessionId asking);
  std::vector<std::pair<SessionId, std::uint32_t>> recall(Device& device, SessionId asking, Bytes bytes);
  void send_memory_info(Session& session, Device& device, std::uint32_t request);
  void on_status(const Wire& wire, std::uint32_t request);
  void answer_status();
  Verdict violation(Session& session) const;

  // In orders.cpp.
  struct Trim {
    Wire wire;
    std::uint32_t request;
    std::uint32_t device;
    bool to_driver;                         // else what comes back stays in the pool
    std::vector<std::uint32_t> unanswered;  // recalls
  };
  void on_order(const Wire& wire, unsigned uid, const protocol::Order& order);
  protocol::Status order_limit(const protocol::Order& order, unsigned uid);
  void begin_trim(const Wire& wire, const protocol::Order& order, bool to_driver);
  void note_recalled(std::uint32_t number);
  void end_trim(std::uint64_t trim);

  std::vector<std::unique_ptr<Device>> devices_;  // by index
  const int driver_version_;
  policy::Policy policy_;
  const std::uint64_t epoch_;
  std::map<SessionId, Session> sessions_;
  std::uint64_t next_session_ = 1;
  std::uint32_t next_recall_ = 1;
  std::map<std::uint64_t, Trim> trims_;  // that wait for sessions
  std::uint64_t next_trim_ = 1;
  std::uint64_t recalls_ = 0, late_recalls_ = 0;
  std::map<std::pair<unsigned, std::string>, chunks::DomainId> domains_;  // (uid, container)
  std::map<std::string, chunks::GroupId> groups_;                         // by sharing key
  std::vector<std::pair<Wire, std::uint32_t>> waiting_status_;            // who asked, and in which request
  bool status_scheduled_ = false;
  Nanos next_status_{};
};

}  // namespace vramd
