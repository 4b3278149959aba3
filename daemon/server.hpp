// Accepts connections, makes sessions of them and watches their processes. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "allocator/base/units.hpp"
#include "daemon/broker.hpp"
#include "daemon/users.hpp"

namespace boost::asio {
class io_context;
}

namespace vramd {

class Server {
 public:
  // `listening` is borrowed and must outlive the server.
  Server(boost::asio::io_context& loop, int listening, Broker& broker, Users& users);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void stop();  // accepts nothing more and closes every connection
  const std::map<std::string, std::uint64_t>& dropped() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vramd
