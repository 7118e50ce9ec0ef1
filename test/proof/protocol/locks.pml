/*
 * The same beside the locks of PostgreSQL at READ COMMITTED (stores/sql/postgres/statements.ts): a statement sees what was
 * committed when it began, waits for the locks of others, and looks at a row that it has locked as that row is then.
 * What makes a user's session live locks the user's row, and reads the floor there. `deleteUser` locks that row in one
 * statement, and deletes in the next. A logout deletes by key, without the user's row. A series that ends is deleted, or
 * moved: an UPDATE of its row, with the lock of the user's.
 *
 * Left out: pieces and the excepted session (user.pml), deadlines, other isolation levels.
 */
#define KEYS 6
#define SESSION 1
#define RENEWED 2
#define SERIES 3
#define RECALLED 4
#define LOGGED_IN 5

bool live[KEYS];
byte parent[KEYS];
bit passwordVersion[KEYS];
bool doomed[KEYS];
/* A row that a transaction has deleted and not yet committed: those that want it wait. */
bool deleting[KEYS];
/* What an UPDATE has moved. FOR KEY SHARE would neither wait for that nor see it, since the key of the row stays. */
bool moved[KEYS];
/* Who holds the user's row, and how many hold a parent (FOR SHARE). */
byte user;
byte share[KEYS];
bit floor; /* committed */
bit appVersion;

bool resolved, seriesEnded, waited, stale, orphaned, missed;
byte running;
#ifndef CALLS
#define CALLS 5
#endif
byte calls = CALLS;

#define some(which) (which(1) || which(2) || which(3) || which(4) || which(5))
#define livesDoomed(k) (live[k] && doomed[k])
#define livesOutdated(k) (live[k] && passwordVersion[k] == 0)
#define livesOfSeries(k) (live[k] && (k == SERIES || parent[k] == SERIES))

bool G3_log_out_everywhere_is_complete = true;
bool G3_no_stale_log_in = true;
bool G3_what_a_series_began_ends_with_it = true;

inline invariants() {
  /* G3: what existed when it was called is dead, and everything derived from it meanwhile. */
  G3_log_out_everywhere_is_complete = !(resolved && some(livesDoomed));
  assert(G3_log_out_everywhere_is_complete);
  /* G3: a login that verified an older password gets no session, even if it waited for the lock meanwhile. */
  G3_no_stale_log_in = !(resolved && some(livesOutdated));
  assert(G3_no_stale_log_in);
  /* G3: after the end of a series nothing lives that a token of it began. */
  G3_what_a_series_began_ends_with_it = !(seriesEnded && some(livesOfSeries));
  assert(G3_what_a_series_began_ends_with_it)
}

inline lockUser() {
  atomic { user == 0 -> user = _pid }
}

#ifdef FLOOR_FROM_SNAPSHOT
#define floorNow snapshotOfFloor
#else
#define floorNow floor
#endif
#ifdef PARENT_NOT_LOCKED
#define parentLives(above) snapshotOfParent
#elif defined(PARENT_BY_KEY_SHARE)
#define parentLives(above) (snapshotOfParent && (live[above] || moved[above]))
#else
#define parentLives(above) (snapshotOfParent && live[above])
#endif

/* `create`: one statement. A session with a parent asks for that one's row too. */
inline begin() {
  atomic { snapshotOfFloor = floor; waited = waited || user != 0 }
#ifndef USER_NOT_LOCKED
  lockUser()
#endif
}

inline commit() {
  atomic {
    if
    :: user == _pid -> user = 0
    :: else
    fi;
    snapshotOfFloor = 0;
    version = 0
  }
}

inline create(k) {
  begin();
  if
  :: atomic { floorNow > version -> stale = true }
  :: atomic { floorNow <= version -> live[k] = true; passwordVersion[k] = version; invariants() }
  fi;
  commit()
}

inline createWithParent(k, above) {
  snapshotOfParent = live[above];
  begin();
  if
  :: atomic { floorNow > version -> stale = true }
  :: atomic { floorNow <= version && !deleting[above] ->
       mayWrite = parentLives(above);
#ifndef PARENT_NOT_LOCKED
       share[above] = share[above] + mayWrite
#endif
     }
     if
     :: atomic { mayWrite ->
          live[k] = true;
          parent[k] = above;
          passwordVersion[k] = version;
          doomed[k] = doomed[above];
#ifndef PARENT_NOT_LOCKED
          share[above]--;
#endif
          invariants() }
     :: atomic { !mayWrite -> orphaned = true }
     fi
  fi;
  atomic { snapshotOfParent = false; mayWrite = false }
  commit()
}

/* `delete`: one statement, that waits for those who hold the row. */
inline delete(k) {
  atomic { share[k] == 0 && !deleting[k] -> live[k] = false; invariants() }
}

/* A `replace` that leaves a forward: one statement, that locks the user's row and waits for those who hold its own. */
inline move(k) {
  lockUser();
  if
  :: atomic { share[k] == 0 && !deleting[k] -> moved[k] = live[k]; live[k] = false; invariants(); user = 0 }
#ifdef PARENT_BY_KEY_SHARE
  :: atomic { share[k] > 0 && !deleting[k] -> moved[k] = live[k]; live[k] = false; invariants(); user = 0 }
#endif
  fi
}

/* A new ID: the user's row, then the old row as it is now. */
proctype Renew() {
  bool seen;
  seen = live[SESSION];
  lockUser();
  if
  :: atomic { !deleting[SESSION] ->
       if
       :: seen && live[SESSION] && floor <= passwordVersion[SESSION] ->
         live[SESSION] = false;
         live[RENEWED] = true;
         passwordVersion[RENEWED] = passwordVersion[SESSION];
         doomed[RENEWED] = doomed[SESSION]
       :: else
       fi;
       invariants();
       user = 0 }
  fi;
  seen = false;
  running--
}

proctype LogIn() {
  bit version, snapshotOfFloor;
  version = appVersion;
  create(LOGGED_IN);
  running--
}

proctype Recall() {
  bit version, snapshotOfFloor;
  bool snapshotOfParent, mayWrite;
  if
  :: atomic { live[SERIES] -> version = passwordVersion[SERIES] }; createWithParent(RECALLED, SERIES)
  :: atomic { !live[SERIES] -> skip }
  fi;
  running--
}

/* The end of a series: its row, then those that a SELECT finds. */
proctype EndSeries() {
  bool child;
  if
  :: delete(SERIES)
  :: move(SERIES)
  fi;
  child = live[RECALLED];
  if
  :: child -> delete(RECALLED)
  :: else
  fi;
  atomic { child = false; seriesEnded = true; invariants(); running-- }
}

inline findAll() {
  d_step { k = 1; do :: k < KEYS -> target[k] = live[k]; k++ :: else -> break od; k = 0 }
}

/* `deleteUser`, one transaction: the lock and the floor, then a DELETE that sees all that was committed by then. */
proctype DeleteUser() {
  bool target[KEYS];
  byte k;
  appVersion = 1;
  d_step { k = 1; do :: k < KEYS -> doomed[k] = live[k]; k++ :: else -> break od; k = 0 }
#ifdef DELETE_IN_THE_LOCKING_STATEMENT
  findAll();
  waited = waited || user != 0;
  lockUser();
#else
  waited = waited || user != 0;
  lockUser();
  findAll();
#endif
  k = 1;
  do
  :: k < KEYS && target[k] ->
    /* A row that another holds is waited for; one that is gone by then is left. */
    atomic { share[k] == 0 -> deleting[k] = live[k]; missed = missed || !live[k]; k++ }
  :: k < KEYS && !target[k] -> k++
  :: k == KEYS -> break
  od;
  /* The COMMIT. */
  atomic {
    k = 1;
    do
    :: k < KEYS ->
      if
      :: deleting[k] -> live[k] = false; deleting[k] = false
      :: else
      fi;
      target[k] = false;
      k++
    :: else -> break
    od;
    k = 0;
    floor = 1;
    user = 0;
    resolved = true;
    invariants()
  }
  running--
}

#define SCENE(condition) if :: condition -> printf("met\n") :: else fi
#define MAY(call) if :: calls > 0 -> calls--; running++; run call :: true fi;

init {
  atomic {
    live[SESSION] = true; live[SERIES] = true;
    MAY(Renew()) MAY(LogIn()) MAY(Recall()) MAY(EndSeries()) MAY(DeleteUser())
    calls = 0
  }
  running == 0;
  atomic {
    SCENE(resolved && stale && waited)
    SCENE(resolved && orphaned && !seriesEnded)
    SCENE(seriesEnded && orphaned && !resolved)
    SCENE(resolved && missed)
    SCENE(resolved && live[LOGGED_IN])
    SCENE(resolved && doomed[RENEWED])
    SCENE(seriesEnded && !resolved && parent[RECALLED] == SERIES)
    SCENE(!resolved && !seriesEnded && live[RECALLED] && live[RENEWED])
  }
}
