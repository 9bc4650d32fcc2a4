/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's part of rdma_cm: descriptors, addresses of the host, time. */
#ifndef SFNIC_DAEMON_CM_H
#define SFNIC_DAEMON_CM_H

#include "softnic/cma.h"

/* 0 or a positive errno. */
/* @addrs: see sfnic_addr_device(); stays valid. */
int daemon_cm_start(const struct rnic *r, const char *addrs);
/* @fd is the daemon's end of a channel; stays with it on success. */
int daemon_cm_open(int fd, uint32_t *channel);
/* The other end is closed. */
void daemon_cm_close(uint32_t channel);
int daemon_cm_command(const struct cma_req *req, struct cma_rsp *rsp);
/* Milliseconds until it wants to be called again, or -1. */
int daemon_cm_timers(void);
/* A process has died, perhaps with what it was told in its hand. */
void daemon_cm_sync(void);
void daemon_cm_count(struct cma_objects *n);

#endif
