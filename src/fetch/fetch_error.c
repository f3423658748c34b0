/* fetch_error.c - the words for errors, and the error that each outcome of libcurl means. */
#include "fetch/fetch_error.h"

#include "base/check.h"

const char *wb_fetch_error_word(enum wb_fetch_error error)
{
    static const char *const words[] = {
#define WB_FETCH_ERROR_WORD(name, word) [name] = word,
        WB_FETCH_ERRORS(WB_FETCH_ERROR_WORD)
#undef WB_FETCH_ERROR_WORD
    };

    WB_CHECK((size_t)error < sizeof words / sizeof *words);
    return words[error];
}

/* The connection broke, or the chunks make no sense: libcurl has one code for both. */
static enum wb_fetch_error receive_error(bool answered, const char *words)
{
    if (strstr(words, "chunk"))
        return WB_FETCH_PROTOCOL;
    return answered ? WB_FETCH_RESET : WB_FETCH_CONNECT;
}

enum wb_fetch_error wb_fetch_error_of_curl(CURLcode code, bool answered, const char *words)
{
    switch (code) {
    case CURLE_OK:
        return answered ? WB_FETCH_OK : WB_FETCH_EMPTY;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED:
    case CURLE_PROXY:
        return WB_FETCH_CONNECT;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return receive_error(answered, words);
    case CURLE_OPERATION_TIMEDOUT:
        return WB_FETCH_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_SHUTDOWN_FAILED:
    case CURLE_USE_SSL_FAILED:
        return WB_FETCH_TLS;
    case CURLE_PARTIAL_FILE:
        return WB_FETCH_PARTIAL;
    case CURLE_GOT_NOTHING:
        return answered ? WB_FETCH_PARTIAL : WB_FETCH_EMPTY;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return WB_FETCH_PROTOCOL;
    case CURLE_BAD_CONTENT_ENCODING:
        return WB_FETCH_CODING;
    case CURLE_OUT_OF_MEMORY:
        return WB_FETCH_MEMORY;
    default:
        return WB_FETCH_OTHER;
    }
}
