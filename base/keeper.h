/* keeper: a small process that outlives us, so that whatever ends us (Ctrl-C, a kill -9, a crash) leaves nothing behind.
 *
 * It is started with the first thing that it is to keep. While we live it sleeps. When we are gone, it ends the programs that
 * are still running for us, then removes our temporary folders. Where it cannot be started, things stay as they are. */
#ifndef BZ_KEEPER_H
#define BZ_KEEPER_H

#include <sys/types.h>

/* Starts it now: whoever is about to start a program leaves no time between that and telling of it. */
void bz_keeper_start(void);

/* A folder or a file of ours that goes with us, until it is forgotten. */
void bz_keeper_path(const char *path);
void bz_keeper_forget_path(const char *path);

/* A program that runs for us; a group of them where negative. */
void bz_keeper_program(pid_t program);
void bz_keeper_forget_program(pid_t program);

#endif
