#include "daemon/http.hpp"

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <optional>

#include "daemon/log.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t kMaxConnections = 40;
constexpr std::uint32_t kMaxHeader = 8 * 1024;
constexpr std::uint64_t kMaxBody = 1024;  // read and ignored: nothing here takes one
constexpr auto kTime = std::chrono::seconds(10);

using Response = http::response<http::string_body>;

Response make_response(http::status status, unsigned version, bool keep_alive, Page page, bool head) {
  Response response(status, version);
  response.set(http::field::server, "vramd");
  response.set(http::field::content_type, page.type);
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.keep_alive(keep_alive);
  response.content_length(page.body.size());
  if (!head) response.body() = std::move(page.body);
  return response;
}

Page short_page(unsigned status, const char* what) { return {status, "text/plain; charset=utf-8", what}; }

std::optional<tcp::endpoint> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  unsigned short port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  std::string host = text.substr(0, colon);
  if (host.empty()) return tcp::endpoint(tcp::v4(), port);
  if (host == "localhost") host = "127.0.0.1";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) return std::nullopt;
  return tcp::endpoint(address, port);
}

std::string address_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return endpoint.address().is_v6() ? text("[", host, "]:", endpoint.port()) : text(host, ":", endpoint.port());
}

// One connection; lives by its pending operation.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(tcp::socket socket, const HttpServer::Handler& handler, std::shared_ptr<std::size_t> count)
      : stream_(std::move(socket)), handler_(handler), count_(std::move(count)) {
    ++*count_;
  }
  ~Exchange() { --*count_; }

  void read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeader);
    parser_->body_limit(kMaxBody);
    stream_.expires_after(kTime);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) { self->on_read(error); });
  }

 private:
  void on_read(beast::error_code error) {
    if (error == http::error::header_limit || error == http::error::body_limit)
      return write(make_response(http::status::payload_too_large, 11, false, short_page(413, "Too large.\n"), false));
    if (error == http::error::end_of_stream || error == beast::error::timeout) return;
    // What else the parser does not like is told; when the socket is gone the answer goes nowhere.
    if (error) return write(make_response(http::status::bad_request, 11, false, short_page(400, "Bad request.\n"), false));
    const auto& request = parser_->get();
    const bool head = request.method() == http::verb::head;
    if (!head && request.method() != http::verb::get) {
      auto response = make_response(http::status::method_not_allowed, request.version(), request.keep_alive(),
                                    short_page(405, "Only GET and HEAD.\n"), false);
      response.set(http::field::allow, "GET, HEAD");
      return write(std::move(response));
    }
    std::string_view path(request.target().data(), request.target().size());
    path = path.substr(0, path.find('?'));
    Page page = handler_(path);
    const auto status = static_cast<http::status>(page.status);
    write(make_response(status, request.version(), request.keep_alive(), std::move(page), head));
  }

  void write(Response response) {
    response_ = std::move(response);
    stream_.expires_after(kTime);
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (error) return;
      if (self->response_.keep_alive()) return self->read();
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMaxHeader + kMaxBody};
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
  const HttpServer::Handler& handler_;
  std::shared_ptr<std::size_t> count_;
};

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<HttpServer::Impl> {
 public:
  Impl(asio::io_context& loop, Handler handler) : acceptor_(loop), pause_(loop), handler_(std::move(handler)) {}

  Try<void> open(const std::string& address) {
    const auto endpoint = parse_address(address);
    if (!endpoint)
      return trouble(kExitUsage, text("--web.listen-address ", address,
                                      ": expected ADDRESS:PORT such as "
                                      "127.0.0.1:9845, or port 0 for any"));
    boost::system::error_code error;
    acceptor_.open(endpoint->protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(*endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (error)
      return trouble(kExitUsage, text("--web.listen-address ", address, ": ", error.message(),
                                      "; choose another with "
                                      "--web.listen-address ADDRESS:PORT (port 0 = any free one)"));
    return {};
  }

  void accept() {
    acceptor_.async_accept([self = shared_from_this()](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || self->stopped_) return;
      if (error) {
        // Out of descriptors: waiting for the same connection at once would spin.
        log::error(text("http: accept: ", error.message()));
        self->pause_.expires_after(std::chrono::milliseconds(100));
        return self->pause_.async_wait([self](const beast::error_code& cancelled) {
          if (!cancelled) self->accept();
        });
      }
      if (*self->count_ < kMaxConnections) std::make_shared<Exchange>(std::move(socket), self->handler_, self->count_)->read();
      self->accept();
    });
  }

  std::string address() const {
    boost::system::error_code error;
    const auto endpoint = acceptor_.local_endpoint(error);
    return error ? std::string() : address_text(endpoint);
  }

  void stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

 private:
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const Handler handler_;
  const std::shared_ptr<std::size_t> count_ = std::make_shared<std::size_t>(0);
  bool stopped_ = false;
};

Try<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& loop, const std::string& address, Handler handler) {
  auto impl = std::make_shared<Impl>(loop, std::move(handler));
  if (auto ok = impl->open(address); !ok) return tl::unexpected(ok.error());
  impl->accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() { impl_->stop(); }
std::string HttpServer::address() const { return impl_->address(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace vramd
