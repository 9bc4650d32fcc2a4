/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process's side of the software RNIC: the connection to the daemon, the
 * arena mapped here, contexts named by file position, event pipes.
 *
 * Nothing is connected before the first open of a device.  Every function may
 * be called from any thread and after fork (the child connects anew).
 */
#ifndef SFNIC_CLIENT_H
#define SFNIC_CLIENT_H

#include <stdbool.h>
#include <sys/stat.h>
#include "softnic/proto.h"

/* Connected, arena mapped?  Connects if not; NULL and errno on failure. */
struct rnic *sfnic_rnic(void);

/*
 * One call to the daemon.  @send_fd and @recv_fd (NULL: none wanted) travel
 * with it.  Returns 0 or a positive errno; EIO if the daemon is gone.
 */
int sfnic_call(struct sfnic_req *req, int send_fd, struct sfnic_rsp *rsp,
	       int *recv_fd);

/*
 * What an fd number below SFNIC_FD_TABLE is, as far as this process has seen:
 * 0 nothing of ours, SFNIC_FD_EVENTS the read end of an event pipe,
 * SFNIC_FD_INTERNAL a descriptor that the program does not know of, SFNIC_FD_CM
 * an event channel of rdma_cm, else context number | device << 16.
 */
#define SFNIC_FD_TABLE 4096
#define SFNIC_FD_EVENTS (1u << 31)
#define SFNIC_FD_INTERNAL (1u << 30) /* not for the program to close */
#define SFNIC_FD_CM (1u << 29)	     /* an event channel of rdma_cm */
extern uint32_t sfnic_fd_ctx[SFNIC_FD_TABLE];

/* Opens uverbs@unit, if it is a device of ours: a command fd whose file
 * position names the context. */
int sfnic_open(uint32_t unit, int flags);
/*
 * The context that @fd stands for, or 0 if it is not a command fd.  A table
 * look-up for the usual case; exact also for fds that came by dup, fork or
 * SCM_RIGHTS.  @dev gets the device number.
 */
uint32_t sfnic_context(int fd, uint32_t *dev);
/* To be called around close(2), dup2(2) over, and friends on @fd. */
void sfnic_fd_closed(int fd);

/* A pipe for completion events; returns the read end and the channel number. */
int sfnic_channel(uint32_t ctx, int *fd, uint32_t *channel);
int sfnic_async_fd(uint32_t ctx, int *fd);
/*
 * Removes the unread events of a destroyed object from the pipe that @fd is
 * the read end of; returns how many there were.  @record is the first 8 bytes
 * of a record, @size the size of one (8 completion, 16 asynchronous).
 */
uint32_t sfnic_drop_events(int fd, uint64_t record, uint32_t size);
/*
 * Around a destroy and the removal of its events: two at once would hold back
 * each other's.
 */
void sfnic_lock_events(void);
void sfnic_unlock_events(void);
/* The channel whose read end @fd is (also a dup of it); 0 if it is none. */
uint32_t sfnic_fd_channel(int fd);
/* The read end of a channel or of a context's asynchronous events, or -1. */
int sfnic_channel_fd(uint32_t channel);
int sfnic_async_read_fd(uint32_t ctx);

/*
 * Opens rdma_cm: an event channel.  It is one end of a pair of sockets, whose
 * other end the daemon has: readable when an event waits, and the daemon knows
 * when its last reference is gone.
 */
int sfnic_cm_open(int flags);
/* The channel that @fd is, also by dup or from another process; 0: none. */
uint32_t sfnic_cm_channel(int fd);

/*
 * A descriptor that names the file behind @fd and can do nothing else, to be
 * sent to the daemon and closed with sfnic_close_fd(); or a negative errno.
 */
int sfnic_inode_fd(int fd);
void sfnic_close_fd(int fd);

/* Registers memory of this process; converts pages where it can. */
int sfnic_reg_mr(uint32_t ctx, struct rnic_mr_attr *attr, uint32_t *key);
/* Registers a part of a dmabuf: @attr->addr is an offset in it. */
int sfnic_reg_dmabuf(uint32_t ctx, int fd, struct rnic_mr_attr *attr,
		     uint32_t *key);
/* Changes what @mask says (enum rnic_mr_mask). */
int sfnic_rereg_mr(uint32_t ctx, uint32_t key, uint32_t mask,
		   struct rnic_mr_attr *attr);
int sfnic_dereg_mr(uint32_t ctx, uint32_t key);

/*
 * Copies own memory by the kernel's hand: what watches this program's accesses
 * (valgrind, sanitizers) has nothing to say.
 */
bool sfnic_copy_own(char *to, uint64_t va, uint64_t len);
/* The arena as mapped here, and a descriptor of it. */
void *sfnic_arena(int *fd);

/* Runtime directory (fixed by SFNIC_DIR in the environment, else derived). */
const char *sfnic_dir(void);
/* stat() of uverbs@unit: a character device, as libibverbs expects it. */
void sfnic_fake_stat(uint32_t unit, struct stat *st);
/* The same for rdma_cm. */
void sfnic_fake_cm_stat(struct stat *st);
/* The same for fstat() of a command fd of device @dev. */
void sfnic_fake_fstat(uint32_t dev, struct stat *st);

#endif
