/*
 * `replace` across two slots of a Redis Cluster: a login of a user whose shard is another than that of the session that
 * was there (stores/redis/store.ts). Three steps: PUT writes the new record, LEAVE ends the old one if it has not changed
 * and leaves a mark in its place, and where LEAVE ended nothing, UNDO removes the new record again.
 *
 * Each step is a script on one server. Its answer may be lost and the script sent again, or its caller dies after it or
 * before it.
 *
 * Left out: what a single slot does (session.pml, user.pml), limits, the cluster's own failovers, and a PUT that is
 * delivered again after its record has ended: that begins it anew until the deadline of the call, as the page says.
 */
#define NONE 0
#define KEYS 4
/* The session that was there, and the key of each of the two logins. */
#define OLD 1

mtype = { record, mark, created, gone, conflict, stale_login };

typedef Stored {
  mtype is; /* 0: nothing */
  byte attempt; /* of the mark under the old key */
  byte version;
  bit passwordVersion;
};
Stored at[KEYS];
/* Of the user who logs in. */
bit floor;
bit appVersion;

byte lost = 2; /* how many answers may be lost, or callers die */
byte endedBy; /* by whose LEAVE the old one ended, or NONE */
bool existed[KEYS]; /* at the call of deleteUser */
bool refused[KEYS], finished[KEYS], succeeded[KEYS];
bool loggedOut, resolved, undone, again;
byte running;
#ifndef CALLS
#define CALLS 4
#endif
byte calls = CALLS;

#define lives(k) (at[k].is == record)

bool G2_no_lost_update = true;
bool G3_log_out_everywhere_is_complete = true;
bool G3_no_stale_log_in = true;
bool G4_never_the_old_and_the_new = true;
bool G4_one_successor_or_none = true;
bool G4_a_refused_log_in_leaves_nothing = true;
bool G4_gone_means_that_another_ended_it = true;
bool G7_a_refused_log_in_ends_nothing = true;

inline invariants() {
  /* G3: what was live when deleteUser was called is dead once it has resolved. */
  G3_log_out_everywhere_is_complete = !(resolved && ((existed[2] && lives(2)) || (existed[3] && lives(3))));
  assert(G3_log_out_everywhere_is_complete);
  /* G3: a login that verified an older password gets no session, at whichever of its steps it is. */
  G3_no_stale_log_in = !(resolved && floor == 1 && ((lives(2) && at[2].passwordVersion == 0) || (lives(3) && at[3].passwordVersion == 0)));
  assert(G3_no_stale_log_in);
  /* G4: the old ID is dead when the new one is told. */
  G4_never_the_old_and_the_new = !(lives(OLD) && (succeeded[2] || succeeded[3]));
  assert(G4_never_the_old_and_the_new);
  /* G4: of two logins in its place at most one takes it. */
  G4_one_successor_or_none = !(succeeded[2] && succeeded[3]);
  assert(G4_one_successor_or_none);
  /* G4: if the old one cannot be ended, the new one is removed: it does not live after the answer, nor later. */
  G4_a_refused_log_in_leaves_nothing = !(refused[2] && lives(2)) && !(refused[3] && lives(3));
  assert(G4_a_refused_log_in_leaves_nothing)
}

inline forget(k) {
  at[k].is = 0;
  at[k].attempt = 0;
  at[k].version = 0;
  at[k].passwordVersion = 0
}

/* PUT: makes the new one live. */
inline put() {
  if
  :: lives(key) -> outcome = created
#ifndef BEGUN_ANEW
  :: !lives(key) && written -> outcome = created
#endif
#ifndef FLOOR_NOT_ASKED
  :: !lives(key) && floor > version -> outcome = stale_login
#endif
  :: else ->
    at[key].is = record;
    at[key].passwordVersion = version;
    written = true;
    outcome = created
  fi;
  invariants()
}

#ifdef MARK_WITHOUT_ATTEMPT
#define isOwnMark true
#else
#define isOwnMark (at[OLD].attempt == key)
#endif

/* LEAVE: decides whether the new one stays. */
inline leave() {
  if
#ifndef NO_MARK
  :: at[OLD].is == mark && isOwnMark -> outcome = mark
#endif
  :: else ->
    if
    :: !lives(OLD) -> outcome = gone
#ifndef LEAVE_WITHOUT_VERSION
    :: lives(OLD) && at[OLD].version != oldVersion -> outcome = conflict
#endif
    :: else ->
      /* G2: what was written after the login had read the old record is not lost with it: the call is told. */
      G2_no_lost_update = at[OLD].version == oldVersion;
      assert(G2_no_lost_update);
#ifndef OLD_STAYS
      forget(OLD);
#endif
#ifndef NO_MARK
      at[OLD].is = (lives(OLD) -> record : mark);
      at[OLD].attempt = key;
#endif
      endedBy = key;
      outcome = mark
    fi
  fi;
  invariants()
}

inline undo() {
  if
#ifndef NOT_UNDONE
  :: lives(key) -> forget(key); undone = true
#endif
  :: else -> skip
  fi
}

/* The caller dies before a step, or its answer is lost and the step comes again, or once. */
inline died() {
  if
  :: atomic { lost > 0 -> lost--; goto over }
  :: true
  fi
}
#define ONCE_OR_TWICE(step) d_step { step }; if :: atomic { lost > 0 -> lost--; again = true }; d_step { step } :: true fi

proctype LogIn(byte key) {
  byte oldVersion;
  bit version;
  bool written;
  mtype outcome;
  atomic { version = appVersion; oldVersion = at[OLD].version }
  if
  :: oldVersion == 0 -> goto over /* there is nothing to take the place of */
  :: else
  fi;
#ifdef OLD_FIRST
  ONCE_OR_TWICE(leave());
  died();
  if
  :: outcome != mark -> goto answer
  :: else
  fi;
  ONCE_OR_TWICE(put());
  goto answer;
#else
  ONCE_OR_TWICE(put());
  died();
  if
  :: outcome == stale_login -> goto answer
  :: else
  fi;
  ONCE_OR_TWICE(leave());
  died();
  if
  :: outcome == mark -> outcome = created
#ifdef ABSENT_STAYS
  :: outcome == gone -> outcome = created
#endif
  :: else ->
    if
    :: d_step { undo() }
    :: atomic { lost > 0 -> lost--; goto over } /* it failed, and the call rejects */
    fi
  fi;
#endif
answer:
  atomic {
    /* G4: `gone` is said where another call ended the old one, never to a call that ended it itself. */
    G4_gone_means_that_another_ended_it = outcome != gone || endedBy != key;
    assert(G4_gone_means_that_another_ended_it);
    /* G7: a login that is refused leaves the session that was there. */
    G7_a_refused_log_in_ends_nothing = outcome != stale_login || endedBy != key;
    assert(G7_a_refused_log_in_ends_nothing);
    succeeded[key] = outcome == created;
    refused[key] = outcome != created;
    invariants()
  }
over:
  atomic { outcome = 0; version = 0; oldVersion = 0; written = false; finished[key] = true; running-- }
}

/* Any write to the session that is there. */
proctype Update() {
  atomic {
    if
    :: lives(OLD) -> at[OLD].version++
    :: else
    fi
  }
  running--
}

/* A logout with the old cookie. The mark of a replacement stays. */
proctype LogOut() {
  d_step {
    if
    :: lives(OLD) -> forget(OLD)
    :: else -> skip
    fi;
    loggedOut = true
  }
  running--
}

/* `deleteUser` of the user who logs in, with the new password version where the password was changed. */
proctype DeleteUser() {
  bit withVersion;
  if
#ifndef BEGUN_ANEW
  :: true -> withVersion = 1
#endif
  :: true
  fi;
  appVersion = withVersion;
  atomic { existed[2] = lives(2); existed[3] = lives(3) }
  d_step {
    if
    :: lives(2) -> forget(2)
    :: else -> skip
    fi;
    if
    :: lives(3) -> forget(3)
    :: else -> skip
    fi;
    floor = withVersion;
    resolved = true;
    invariants()
  }
  running--
}

#define SCENE(condition) if :: condition -> printf("met\n") :: else fi
#define MAY(call) if :: calls > 0 -> calls--; running++; run call :: true fi;

init {
  atomic {
    at[OLD].is = record; at[OLD].version = 1;
    MAY(LogIn(2))
    MAY(LogIn(3))
    MAY(Update()) MAY(LogOut()) MAY(DeleteUser())
    calls = 0
  }
  running == 0;
  atomic {
    SCENE(succeeded[2] && refused[3] && undone && lives(2))
    SCENE(succeeded[2] && again && lives(2))
    SCENE(refused[2] && lives(OLD))
    SCENE(refused[2] && resolved && !undone && lives(OLD))
    SCENE(succeeded[2] && resolved && !lives(2))
    SCENE(succeeded[2] && resolved && lives(2))
    SCENE(finished[2] && !succeeded[2] && !refused[2] && lives(2) && lives(OLD))
    SCENE(finished[2] && !succeeded[2] && !refused[2] && lives(2) && !lives(OLD))
    SCENE(loggedOut && refused[2])
  }
}
