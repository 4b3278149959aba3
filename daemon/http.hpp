// A small HTTP/1.1 server: GET and HEAD, bounded headers, time-outs, a bounded number of connections. Loop
// thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/pages.hpp"
#include "daemon/trouble.hpp"

namespace boost::asio {
class io_context;
}

namespace vramd {

class HttpServer {
 public:
  using Handler = std::function<Page(std::string_view path)>;

  // `address`: "127.0.0.1:9845", "[::1]:9845", ":9845" (every address); port 0 = any free one.
  static Try<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& loop, const std::string& address, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string address() const;  // with the port that was chosen
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace vramd
