/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages with a file descriptor over a unix socket. */
#ifndef SFNIC_WIRE_H
#define SFNIC_WIRE_H

#include <stddef.h>

/* Connects to DIR/sock; the fd or -errno. */
int wire_connect(const char *dir);
/* Sends one message; 0 or a positive errno. */
int wire_send(int sock, const void *msg, size_t len, int fd);
/*
 * Receives one message of exactly @len bytes; *fd gets what came with it or -1
 * (NULL: closed).  0, or a positive errno; EPIPE at the end.
 */
int wire_recv(int sock, void *msg, size_t len, int *fd);

#endif
