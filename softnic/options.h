/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options shared by `sfnic` and `sfnicd`, and where the two meet.
 */
#ifndef SFNIC_OPTIONS_H
#define SFNIC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* InfiniBand: 4096; Ethernet: the largest that fits the interface. */
#define SFNIC_MTU_AUTO 0

/* Room for the addresses of devices: ten of IPv4, or five long ones of IPv6. */
#define SFNIC_ADDRS_LEN 240

struct sfnic_options {
	uint32_t devices;
	uint32_t ports;
	uint32_t link_layer;   /* enum rnic_link_layer */
	uint32_t mtu;	       /* enum rnic_mtu, or SFNIC_MTU_AUTO */
	char name[32];	       /* device i is name<i> */
	uint64_t arena_size;   /* bytes of address space, not of memory */
	uint32_t linger;       /* seconds that an unused daemon stays */
	uint32_t host_devices; /* the host's own RDMA devices are shown, too */
	char addrs[SFNIC_ADDRS_LEN]; /* "IP=DEVICE,..." for rdma_cm, or "-" */
	char instance[32]; /* separate fabrics of one user; "" is the usual */
	bool given; /* any of the fabric's options was on the command line */
};

/*
 * Takes the options at the front of argv (both `--mtu 1024` and `--mtu=1024`).
 * Returns the index of the first word that is not one of them, or -1 after a
 * message on stderr.
 */
int sfnic_options_parse(struct sfnic_options *opt, int argc, char **argv);
/* Room for the longest line. */
#define SFNIC_OPTIONS_LINE 440
/* One line that two equal sets of options have in common ("devices=1 ..."). */
void sfnic_options_line(const struct sfnic_options *opt, char *buf, size_t len);

/*
 * The device that @addrs gives an address to (AF_INET, AF_INET6), or -1 if it
 * does not name it.
 */
int sfnic_addr_device(const char *addrs, int family, const void *ip);
/* Calls @each for all of them, in order. */
void sfnic_addr_each(const char *addrs,
		     void (*each)(void *arg, const char *ip, uint32_t dev),
		     void *arg);

/* Room for a line about a path and what to do. */
#define SFNIC_MSG_LEN 512

/*
 * The runtime directory: SFNIC_DIR from the environment, else made of user,
 * network namespace and instance below $XDG_RUNTIME_DIR, /run/user/UID or
 * /tmp.  Created with mode 0700; refused if somebody else owns it.  Returns 0,
 * or a positive errno with one line that says what to do in @msg.
 */
int sfnic_runtime_dir(const char *instance, char *dir, size_t len, char *msg,
		      size_t msg_len);

/*
 * Makes sure that a daemon serves @dir: connects, or starts one (fds, preload
 * and session of the caller are not passed on; of fifty callers one starts
 * it).  An unused daemon with other options is replaced if @opt->given.
 * Returns a connected socket, or -1 with one line in @msg.
 */
int sfnic_daemon_connect(const char *dir, const struct sfnic_options *opt,
			 char *msg, size_t msg_len);
/*
 * The same from within a program whose daemon has left since `sfnic run`:
 * with the options and the daemon's path that it was given (SFNIC_OPTIONS,
 * SFNIC_DAEMON).  A socket or -1.
 */
int sfnic_daemon_restart(const char *dir, const char *options,
			 const char *daemon);

#endif
