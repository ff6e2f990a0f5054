/* A client of a gateway over HTTP, MCP 2026-07-28, for bench/load.py.
 *
 *     load calls   PORT PATH TOKEN CONNECTIONS CALLS RATE
 *     load streams PORT PATH TOKEN STREAMS 0 0
 *
 * `calls` makes CALLS calls of `echo` with {"n": NUMBER}, RATE each second over CONNECTIONS kept connections (a call that finds
 * none free waits), each number once and never again. Its output is one byte for each number: `o` its own result, `e` an error
 * or an error result, `x` a wrong answer, `l` no answer; then a line of JSON. `streams` opens STREAMS event streams by
 * `subscriptions/listen`, says `ready N` when all are open, holds them until its input ends, then says how many were closed
 * meanwhile. Linux (epoll). */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROOM 8192
struct link {
    int fd, busy, open;
    uint32_t number;
    double sent;
    size_t have;
    char *in;
};

static int poller, port;
static const char *path, *token;
static uint64_t latency[100000]; /* by 0.1 ms */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int dial(struct link *l) {
    int one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    l->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (l->fd < 0 || connect(l->fd, (void *)&at, sizeof at)) return perror("load: connect"), 0;
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
    epoll_ctl(poller, EPOLL_CTL_ADD, l->fd, &e);
    l->have = l->busy = l->open = 0;
    return 1;
}

#define META "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{},\"io.modelcontextprotocol/clientInfo\":{\"name\":\"load\",\"version\":\"1\"}}"

static int post(struct link *l, const char *method, const char *name, const char *body) {
    char out[4096];
    int n = snprintf(out, sizeof out,
        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s"
        "Content-Length: %zu\r\n\r\n%s", path, port, token, method, name, strlen(body), body);
    return send(l->fd, out, n, MSG_NOSIGNAL) == n;
}

/* What came on a connection that waits for a call's answer: 0 not yet whole, else its letter. */
static char judge(struct link *l) {
    char *blank = memmem(l->in, l->have, "\r\n\r\n", 4), id[64], text[64];
    if (!blank) return 0;
    char *length = memmem(l->in, blank - l->in, "Content-Length: ", 16);
    if (!length) return 'x';
    size_t head = blank - l->in + 4, size = strtoul(length + 16, 0, 10);
    if (l->have < head + size) return 0;
    int right = l->have == head + size && size > 0;
    snprintf(id, sizeof id, "\"id\":%u,", l->number);
    snprintf(text, sizeof text, "\"text\":\"%u\"", l->number);
    char *body = l->in + head;
    l->have = 0;
    if (!right || !memmem(body, size, id, strlen(id))) return 'x';
    if (memmem(body, size, "\"isError\":true", 14) || memmem(body, size, "\"error\":", 8)) return 'e';
    return memmem(body, size, text, strlen(text)) ? 'o' : 'x';
}

static int make_calls(int connections, uint32_t calls, double rate) {
    struct link *links = calloc(connections, sizeof *links);
    char *became = malloc(calls + 1), body[1024];
    struct epoll_event events[64];
    memset(became, 'l', calls);
    for (int i = 0; i < connections; i++) {
        links[i].in = malloc(ROOM);
        if (!dial(&links[i])) return 1;
    }
    double began = now(), last = began, worst = 0;
    uint32_t next = 0, done = 0;
    while (done < calls && now() - last < 30) {
        double t = now();
        for (int i = 0; i < connections && next < calls && began + next / rate <= t; i++) {
            struct link *l = &links[i];
            if (l->busy) continue;
            snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
                     "\"arguments\":{\"n\":%u}," META "}}", next, next);
            if (t - (began + next / rate) > worst) worst = t - (began + next / rate);
            l->number = next++, l->busy = 1, l->sent = t;
            if (!post(l, "tools/call", "Mcp-Name: echo\r\n", body)) return perror("load: send"), 1;
        }
        int n = epoll_wait(poller, events, 64, next < calls ? 1 : 100);
        for (int i = 0; i < n; i++) {
            struct link *l = events[i].data.ptr;
            ssize_t got = recv(l->fd, l->in + l->have, ROOM - l->have, MSG_DONTWAIT);
            if (got > 0) {
                l->have += got;
                char letter = judge(l);
                if (!letter) continue;
                double took = (now() - l->sent) * 10000;
                latency[took < 99999 ? (int)took : 99999]++;
                became[l->number] = letter, l->busy = 0, done++, last = now();
            } else if (got == 0 || errno != EAGAIN) {
                if (l->busy) done++, last = now();
                close(l->fd);
                if (!dial(l)) return 1;
            }
        }
    }
    double took = now() - began;
    fwrite(became, 1, calls, stdout);
    uint64_t answered = 0, seen = 0;
    double p50 = 0, p99 = 0;
    for (int i = 0; i < 100000; i++) answered += latency[i];
    for (int i = 0; i < 100000; i++) {
        seen += latency[i];
        if (!p50 && seen * 2 >= answered) p50 = i / 10.0;
        if (!p99 && seen * 100 >= answered * 99) p99 = i / 10.0;
    }
    printf("\n{\"seconds\":%.3f,\"behind_s\":%.3f,\"p50_ms\":%.1f,\"p99_ms\":%.1f}\n", took, worst, p50, p99);
    return 0;
}

static int hold_streams(int streams) {
    struct link *links = calloc(streams, sizeof *links);
    struct epoll_event events[64], e = {.events = EPOLLIN, .data.ptr = 0};
    char body[1024], in[ROOM];
    int sent = 0, open = 0, closed = 0, ready = 0;
    double began = now();
    epoll_ctl(poller, EPOLL_CTL_ADD, 0, &e);
    for (;;) {
        while (sent < streams && sent - open - closed < 64) {
            struct link *l = &links[sent++];
            if (!dial(l)) return 1;
            snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"subscriptions/listen\",\"params\":{"
                     "\"notifications\":{\"toolsListChanged\":true}," META "}}", sent);
            if (!post(l, "subscriptions/listen", "", body)) return perror("load: send"), 1;
        }
        if (!ready && open + closed == streams) {
            ready = 1;
            printf("ready %d %d %.1f\n", open, closed, now() - began), fflush(stdout);
        }
        int n = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < n; i++) {
            struct link *l = events[i].data.ptr;
            if (!l) {
                if (read(0, in, sizeof in) > 0) continue;
                printf("closed %d\n", closed);
                return 0;
            }
            ssize_t got = recv(l->fd, in, sizeof in, MSG_DONTWAIT);
            if (got > 0) {
                int good = memmem(in, got, "200 OK", 6) || memmem(in, got, "acknowledged", 12);
                if (!l->open && good) l->open = 1, open++;
                else if (!l->open) fprintf(stderr, "load: %.*s\n", (int)got, in), l->open = -1, closed++;
            } else {
                if (l->open == 1) open -= !ready;
                if (l->open >= 0) closed++;
                l->open = -1;
                close(l->fd);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 8) return fprintf(stderr, "usage: load calls|streams PORT PATH TOKEN COUNT CALLS RATE\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    port = atoi(argv[2]), path = argv[3], token = argv[4];
    poller = epoll_create1(0);
    if (!strcmp(argv[1], "streams")) return hold_streams(atoi(argv[5]));
    return make_calls(atoi(argv[5]), strtoul(argv[6], 0, 10), atof(argv[7]));
}
