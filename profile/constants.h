/* Every number by which iterations are found that the recording does not tell: what it stands for, where it is from, and what a
 * value twice as large would change. Private to profile/. All are chosen, not measured:
 * the recordings of tests/unit/profile_*.c are cut right with them, and what is said of other values is reasoned. */
#ifndef BZ_PROFILE_CONSTANTS_H
#define BZ_PROFILE_CONSTANTS_H

/* Times as long as the typical iteration from which on the first one is warm-up, and those after it: a first
 * iteration initializes something nearly always, so little is asked of it; later ones vary by a fifth on a machine that others
 * use. Twice as much above 1 (1.3, 1.6): first iterations of programs that compile little count as steady. */
static const double FIRST_IS_WARM_UP = 1.15, NEXT_IS_WARM_UP = 1.3;

/* Share of a training's updates that stand behind the same operators as the one before, or as the one so many before, from which on so many make an
 * iteration. Nine of ten: a validation now and then adds some. Half as many exceptions: such trainings have epochs for iterations. Twice: two
 * networks of which one trains nine times as often have one update. */
static const double UPDATES_ALIKE = 0.9;

/* Share of the time in which a program wanted a processor and had none, from which on its recording is told to be of a busy machine. Twice:
 * times that are a tenth too long are told as they are. */
static const double WAITED = 0.05;

/* Share of the pauses at a divisor of a turn that are longer than most elsewhere: those of steps are, but for a few. More: a step is two where one pause
 * in ten is short by chance. Less: layers between steps are steps. */
static const double NEARLY_AS_LONG = 0.8;

enum {
    /* ns by which a stretch of an iteration must be longer than in most iterations, and as long again, to be taken for a neighbour's. Reasoned: a
     * scheduler gives a neighbour a millisecond and more, an interrupt takes some microseconds. Half: caches that are cold now and then are none of
     * the program's. Iterations that must be alike, to tell what is usual: of fewer half may be disturbed at the same place. */
    DISTURBED_LEAST = 100000,
    DISTURBED_OF = 5,

    /* ns that the launch of a kernel takes at least whose code it loads, and how many times what half of all launches take. Reasoned: a launch takes 2 to
     * 20 us, and loading code a millisecond and more; a launch that waits for room in a queue is one of many that do. Twice: code that is found in memory
     * is told of launches. */
    LOADS = 1000000,
    LOADS_OF = 100,

    /* ns by which a device's clock must be late of the host's to be taken for that. Measured: of 16 recordings of a V100 and of Kineto two are late
     * by 17000, the others by -9000 to 6000, in which launches differ. Twice: work of those two seems queued where it waits for the host. */
    CLOCK_LATE = 10000,

    /* ns from which on all work, or the first of a recording, lies so far behind its launch because it is queued. Reasoned: fifty short kernels. Half:
     * clocks that are later are told as a queue. */
    CLOCK_LATE_MOST = 500000,

    /* One event in so many may differ between two iterations; and where no period is found so, in a second try for a
     * single iteration behind a warm-up. Twice as strict: programs whose branches depend on data have no period. Half: a
     * network of four equal blocks has four iterations. */
    EVENTS_PER_DIFFERENCE = 20,
    EVENTS_PER_DIFFERENCE_AGAIN = 4,

    /* Marks of an iteration that are tried at each width, in the order in which they are met; each costs a walk over all calls. Twice: twice the time for
     * recordings without a period. */
    MARKS_TRIED = 96,

    /* Runs of up to so many calls are tried as a mark, four times as many each time: a network of two functions has runs
     * of dozens of equal calls. */
    LONGEST_MARK = 64,

    /* Iterations cover at least a third of all calls; else there are none. Half: a stretch that repeats while weights
     * are loaded counts as iterations. */
    LEAST_COVERED = 3,

    /* A pause stands out if it is longer than the next one by half of that. Half as strict:
     * sequences are cut in the middle of what a person calls an iteration. */
    PAUSE_LONGER_BY = 2,

    /* What stands between the pieces of a level is a frame, and no noise, from one event in so many of a piece on: an embedding and a
     * head between layers of up to 75 kernels. Twice: a metric of two kernels behind fifty makes an epoch the iteration. */
    FRAME_OF_LAYERS = 25,

    /* Where the host waits for nearly every kernel, waits tell nothing: iterations have more events for each. Twice: small networks
     * that wait for their results count as such. */
    EVENTS_PER_WAIT = 3,

    /* A pass of a network has at least so many events. Twice: the prompt of a network of one layer is taken for its frame. */
    SHORTEST_PASS = 8,

    /* Prompts and tokens: of so many iterations one may be a prompt. Half: training that alternates with an evaluation is taken for it. */
    DECODES_PER_PROMPT = 3,

    /* Sizes that grow at least so often are those of a loop. Twice: loops of fewer steps are not seen. Half: two layers, of which
     * the second is wider, are one. */
    SHORTEST_GROWTH = 3,

    /* Sizes of calls that are made once in a step grow by so much at most. Twice: the layers of a network that
     * reads all before them (12 channels more in each) are taken for a loop. Half: steps of several tokens are not seen. */
    TOKENS_OF_A_STEP = 8,

    /* Operators most of which, by their name, take less than so many nanoseconds compute nothing: views. Twice: short real ones get lost, and
     * steps that differ in them alone. Half: traces that round to microseconds tell a view now as a part of another, now not. */
    SHORTEST_OPERATOR = 5000,

    /* The same where but one name is longer. Twice: the output layer of a small network is no longer seen (3 to 8 µs). Half: what a trace in whole
     * microseconds rounds up. */
    SHORTEST_IN_TURN = 2000,

    /* Times that such a short operator is in a pass at the most. Twice: counts of operators that are now a part of another one, now not, have such a divisor
     * by chance. */
    TIMES_IN_A_PASS = 16,

    /* A thread that is in operators for so many percent of its time while the busiest one is in its own runs beside it. Twice: a loader that
     * mostly runs while the network waits for it cuts iterations. Half: a way back that overlaps the way there is lost. */
    BESIDE = 25,

    /* The same of library calls, of threads whose calls repeat by themselves. More: of four threads on two processors some hardly run together. 0:
     * the way back, which begins when the way there is done, would be no part of an iteration. */
    CALLS_BESIDE = 1,

    /* Distances from a thread's middle call to the next ones that are the same, of which one may be its pass. Chosen. Half: passes that make one call more than 32
     * times are not seen to be a thread's own. */
    PERIODS_TRIED = 64,

    /* Percent of a thread's calls that come again at one distance where its passes are its own. Chosen: one call in twenty may differ, as where pieces of a sequence
     * resemble each other. Half as many may differ: a pass that now and then does more is no thread's own; twice: shares of a pool's threads are taken for passes. */
    REPEATS_ALONE = 95,

    /* A thread that launches at least one kernel for so many of the busiest one asks for steps as well: its copies and waits cut. Twice: one
     * that decodes a few pictures on the device does. Half: the way back of a network that is mostly frozen is left out. */
    LAUNCHES_OF_A_THREAD = 8,

    /* Kernels of different names or shapes, or calls, that no layer has: a block of a transformer with its way back has 30. Twice: a
     * small network that is asked again and again is told as perhaps layers. Half: a block may be taken for a network. */
    DIFFERENT_IN_A_LAYER = 40,

    /* Pauses that come in turns, one before each so many pieces, are no chance from here on: they would be in one recording of so many.
     * Both twice: loops of fewer steps are not seen. */
    TURNS_BY_CHANCE = 10000,

    /* Where a recording begins and ends with a step, pauses so many times as long as any other are no chance even if they are two. Half: a
     * host that is disturbed twice makes three steps of a pass. */
    PAUSE_OUT_OF_LINE = 3,

    /* A pause of so many usual ones and so many nanoseconds ends a pass of a network. Half: a host that is disturbed does. */
    PAUSES_OF_A_REST = 10,
    SHORTEST_REST = 50000
};

#endif
