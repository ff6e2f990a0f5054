/* A server of MCP 2026-07-28 over HTTP that counts its calls by number and does some of them wrong, for bench/load.py.
 *
 *     faulty PORT CALLS PERCENT
 *
 * A call's number is what stands behind `"n":` in its body, below CALLS. PERCENT of the numbers (by a hash, so that everyone can
 * say which) are done wrong: a reset, a 500, an answer after 300 ms, a body that is cut. When its input ends it writes one byte
 * for each number to its output: how often that call came, as a digit, 9 for more. It reads Content-Length bodies only and
 * trusts whoever talks to it. Linux (epoll). */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROOM 65536
struct client {
    int fd;
    size_t have;
    struct client *later;
    double due;
    char in[ROOM], out[2048];
};

static const char DISCOVER[] = "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},"
                               "\"ttlMs\":0,\"cacheScope\":\"private\"}";
static const char LIST[] = "{\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",\"tools\":[{\"name\":\"echo\","
                           "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}},"
                           "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}},{\"name\":\"wipe\","
                           "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}},"
                           "\"annotations\":{\"destructiveHint\":true,\"openWorldHint\":false}}]}";
static struct client *slow;
static uint8_t *came;
static uint32_t calls, percent;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Which wrong a number is done: 0 none, 1 reset, 2 status 500, 3 slow, 4 cut. load.py has the same line. */
static int wrong(uint32_t n) {
    uint32_t h = n * 2654435761u;
    return (h >> 8) % 100 < percent ? 1 + (h >> 28) % 4 : 0;
}

static void let_go(struct client *c, int reset) {
    struct linger l = {1, 0};
    if (reset) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    close(c->fd);
    for (struct client **at = &slow; *at; at = &(*at)->later)
        if (*at == c) { *at = c->later; break; }
    free(c);
}

/* Answer one request; 0 when the client is gone. Answers are small and a client has one at a time, so a send goes whole. */
static int answer(struct client *c, char *body, size_t size) {
    char id[64], *at = memmem(body, size, "\"id\":", 5), *end = body + size;
    size_t n = 0;
    if (!at) return send(c->fd, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 44, MSG_NOSIGNAL), 1;
    for (at += 5; at < end && n < sizeof id - 1 && *at != ',' && *at != '}';) id[n++] = *at++;
    id[n] = 0;
    const char *result = "{\"code\":-32601,\"message\":\"unknown method\"}", *member = "error";
    char said[128];
    int how = 0;
    if (memmem(body, size, "\"tools/call\"", 12)) {
        char *number = memmem(body, size, "\"n\":", 4);
        uint32_t which = number ? strtoul(number + 4, 0, 10) : calls;
        if (which < calls && came[which] < 9) came[which]++;
        how = which < calls ? wrong(which) : 0;
        snprintf(said, sizeof said, "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"%u\"}]}", which);
        result = said, member = "result";
    } else if (memmem(body, size, "\"tools/list\"", 12)) result = LIST, member = "result";
    else if (memmem(body, size, "\"server/discover\"", 17)) result = DISCOVER, member = "result";
    if (how == 1) return let_go(c, 1), 0;
    size_t length = strlen("{\"jsonrpc\":\"2.0\",\"id\":,\"\":}") + n + strlen(member) + strlen(result);
    int head = snprintf(c->out, sizeof c->out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                        how == 2 ? "500 Internal Server Error" : "200 OK", length);
    snprintf(c->out + head, sizeof c->out - head, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":%s}", id, member, result);
    if (how == 3) return c->due = now() + 0.3, c->later = slow, slow = c, 1;
    send(c->fd, c->out, how == 4 ? head + length / 2 : head + length, MSG_NOSIGNAL);
    return how == 4 ? (let_go(c, 0), 0) : 1;
}

static int serve(struct client *c) {
    for (;;) {
        char *blank = memmem(c->in, c->have, "\r\n\r\n", 4);
        if (!blank) return c->have < ROOM ? 1 : (let_go(c, 0), 0);
        size_t head = blank - c->in + 4, length = 0;
        for (char *at = c->in; at < blank;) {
            char *eol = memmem(at, blank + 2 - at, "\r\n", 2);
            if (!strncasecmp(at, "content-length:", 15)) length = strtoul(at + 15, 0, 10);
            at = eol + 2;
        }
        if (c->have < head + length) return head + length < ROOM ? 1 : (let_go(c, 0), 0);
        if (!answer(c, c->in + head, length)) return 0;
        memmove(c->in, c->in + head + length, c->have - head - length);
        c->have -= head + length;
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: faulty PORT CALLS PERCENT\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    calls = strtoul(argv[2], 0, 10), percent = strtoul(argv[3], 0, 10);
    came = calloc(calls + 1, 1);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), poller = epoll_create1(0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 1024)) return perror("faulty"), 1;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = 0}, events[64];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
    e.data.ptr = &slow;
    epoll_ctl(poller, EPOLL_CTL_ADD, 0, &e);
    for (;;) {
        int n = epoll_wait(poller, events, 64, slow ? 5 : -1);
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if ((void *)c == (void *)&slow) {
                char rest[256];
                if (read(0, rest, sizeof rest) > 0) continue;
                for (uint32_t k = 0; k < calls; k++) putchar('0' + came[k]);
                return 0;
            }
            if (!c) {
                int fd = accept4(listener, 0, 0, SOCK_NONBLOCK);
                if (fd < 0) continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                c = calloc(1, sizeof *c);
                c->fd = fd, e.data.ptr = c;
                epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
                continue;
            }
            ssize_t got = recv(c->fd, c->in + c->have, ROOM - c->have, MSG_DONTWAIT);
            if (got <= 0) { let_go(c, 0); continue; }
            c->have += got;
            serve(c);
        }
        double t = now();
        for (struct client **p = &slow; *p;) {
            struct client *c = *p;
            if (c->due > t) { p = &c->later; continue; }
            *p = c->later;
            send(c->fd, c->out, strlen(c->out), MSG_NOSIGNAL);
        }
    }
}
