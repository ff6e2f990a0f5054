/* A server of MCP 2026-07-28 over HTTP that answers as fast as one thread can, for measuring what stands before it.
 *
 *     upstream PORT BYTES [stream]
 *
 * `server/discover`, `tools/list` (one tool, `echo`) and `tools/call`, whose text is BYTES long, are answered with a result under
 * the request's own id; any other method with -32601. `stream`: calls are answered by an event stream of one event. It reads Content-Length bodies only and trusts whoever talks to it: it is
 * no server for anything but a measurement on loopback. Linux (epoll). */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct client {
    int fd;
    char *in, *out;
    size_t have, room, left, off, size;
};

static char *text;
static size_t text_size;
static int poller, streaming;

static const char DISCOVER[] = "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},"
                               "\"ttlMs\":0,\"cacheScope\":\"private\"}";
static const char LIST[] = "{\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",\"tools\":[{\"name\":\"echo\","
                           "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}}},"
                           "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}]}";

static void put(struct client *c, const char *data, size_t size) {
    if (c->size + size > c->room + text_size + 4096) abort();
    memcpy(c->out + c->size, data, size);
    c->size += size;
}

/* The raw id token behind the first `"id":`, which every client this serves writes before `params`. */
static size_t find_id(const char *body, size_t size, char *id, size_t room) {
    const char *at = memmem(body, size, "\"id\":", 5), *end = body + size;
    size_t n = 0;
    if (!at) return 0;
    at += 5;
    int quoted = *at == '"';
    do id[n++] = *at++;
    while (at < end && n < room && (quoted ? at[-1] != '"' || n == 1 : *at != ',' && *at != '}'));
    return n;
}

static void answer(struct client *c, const char *body, size_t size) {
    char id[128], head[512];
    size_t id_size = find_id(body, size, id, sizeof id);
    const char *start = "", *end = "", *middle = "", *member = "result";
    size_t middle_size = 0;
    if (memmem(body, size, "\"tools/call\"", 12)) {
        start = "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"";
        end = "\"}],\"isError\":false}";
        middle = text, middle_size = text_size;
    } else if (memmem(body, size, "\"tools/list\"", 12)) start = LIST;
    else if (memmem(body, size, "\"server/discover\"", 17)) start = DISCOVER;
    else start = "{\"code\":-32601,\"message\":\"unknown method\"}", member = "error";
    size_t whole = strlen("{\"jsonrpc\":\"2.0\",\"id\":,\"\":}") + id_size + strlen(member) + strlen(start) + middle_size + strlen(end);
    int n;
    if (streaming && middle_size) {
        n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "%zx\r\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":", whole + 23, (int)id_size, id, member);
        put(c, head, n), put(c, start, strlen(start)), put(c, middle, middle_size), put(c, end, strlen(end));
        put(c, "}\n\n\r\n0\r\n\r\n", 10);
        return;
    }
    n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                     "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":", whole, (int)id_size, id, member);
    put(c, head, n), put(c, start, strlen(start)), put(c, middle, middle_size), put(c, end, strlen(end)), put(c, "}", 1);
}

static int flush(struct client *c) {
    while (c->off < c->size) {
        ssize_t n = send(c->fd, c->out + c->off, c->size - c->off, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) break;
        c->off += n;
    }
    int done = c->off == c->size;
    struct epoll_event e = {.events = done ? EPOLLIN : EPOLLOUT, .data.ptr = c};
    if (done) c->off = c->size = 0;
    if ((size_t)!done != c->left) epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
    c->left = !done;
    return done;
}

/* Answer every whole request that was read; false when the client is to be let go. */
static int serve(struct client *c) {
    for (;;) {
        char *blank = memmem(c->in, c->have, "\r\n\r\n", 4);
        if (!blank) return c->have < c->room;
        size_t head = blank - c->in + 4, length = 0;
        for (char *at = c->in; at < blank;) {
            char *eol = memmem(at, blank + 2 - at, "\r\n", 2);
            if (!strncasecmp(at, "content-length:", 15)) length = strtoul(at + 15, 0, 10);
            at = eol + 2;
        }
        if (c->have < head + length) return head + length < c->room;
        answer(c, c->in + head, length);
        memmove(c->in, c->in + head + length, c->have - head - length);
        c->have -= head + length;
        if (!flush(c)) return 1;
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: upstream PORT BYTES [stream]\n"), 2;
    streaming = argc > 3;
    signal(SIGPIPE, SIG_IGN);
    text_size = strtoul(argv[2], 0, 10);
    text = malloc(text_size + 1);
    memset(text, 'x', text_size);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 512)) return perror("upstream"), 1;
    poller = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = 0}, events[64];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if (!c) {
                int fd = accept4(listener, 0, 0, SOCK_NONBLOCK);
                if (fd < 0) continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                c = calloc(1, sizeof *c);
                c->fd = fd, c->room = 65536, c->in = malloc(c->room), c->out = malloc(c->room + text_size + 4096);
                e.events = EPOLLIN, e.data.ptr = c;
                epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
                continue;
            }
            if (c->left && !flush(c)) continue;
            ssize_t got = recv(c->fd, c->in + c->have, c->room - c->have, MSG_DONTWAIT);
            if (got > 0) c->have += got;
            if (got == 0 || !serve(c)) close(c->fd), free(c->in), free(c->out), free(c);
        }
    }
}
