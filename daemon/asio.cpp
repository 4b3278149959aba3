// The one place where Asio and Beast are compiled (BOOST_ASIO_SEPARATE_COMPILATION,
// BOOST_BEAST_SEPARATE_COMPILATION).
#include <utility>  // Boost 1.74 forgets it

#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
