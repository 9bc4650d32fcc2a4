/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the command `sfnic`. */
#ifndef SFNIC_SFNIC_H
#define SFNIC_SFNIC_H

#include "softnic/options.h"
#include "softnic/proto.h"

/* argv[0] is the name of the command; all return the exit status. */
int sfnic_run(int argc, char **argv);
int sfnic_devices(int argc, char **argv);
int sfnic_stat(int argc, char **argv);
int sfnic_down(int argc, char **argv);
int sfnic_port(int argc, char **argv);

/* One line on stderr. */
__attribute__((format(printf, 1, 2))) void sfnic_say(const char *format, ...);

#define SFNIC_PATH_LEN 4096

#endif
