#include "allocator/chunks/ledger.hpp"

namespace vramd::chunks {

bool Ledger::open(SessionId session, DomainId domain, const Limits& limits) {
  const auto [at, added] = accounts_.try_emplace(session);
  if (added) {
    at->second.domain = domain;
    at->second.limits = limits;
  }
  return added;
}

Account* Ledger::find(SessionId session) {
  const auto at = accounts_.find(session);
  return at == accounts_.end() ? nullptr : &at->second;
}

const Account* Ledger::find(SessionId session) const {
  const auto at = accounts_.find(session);
  return at == accounts_.end() ? nullptr : &at->second;
}

// Summed anew each time: sessions are few, and a sum that is not stored cannot drift when limits are
// regrouped.
Bytes Ledger::group_used(GroupId group) const {
  Bytes sum;
  for (const auto& [id, account] : accounts_)
    if (account.limits.group == group) sum += account.used();
  return sum;
}

Bytes Ledger::room(const Account& account) const {
  const Bytes own = saturating_sub(account.limits.session, account.used());
  if (account.limits.group == GroupId{}) return own;
  const Bytes shared = saturating_sub(account.limits.group_limit, group_used(account.limits.group));
  return own < shared ? own : shared;
}

bool Ledger::charge(Account& account, std::int64_t bytes, bool is_fact) {
  if (bytes >= 0) {
    const Bytes more{static_cast<std::uint64_t>(bytes)};
    // The sum must not wrap, whatever a peer sends.
    constexpr Bytes kMost{std::uint64_t{1} << 60};
    if (more > kMost || account.charged + more > kMost) return false;
    if (!is_fact && more > room(account)) return false;
    account.charged += more;
    return true;
  }
  const Bytes less{std::uint64_t{0} - static_cast<std::uint64_t>(bytes)};
  if (less > account.charged) return false;
  account.charged -= less;
  return true;
}

}  // namespace vramd::chunks
