/*
 * `replace` across two slots of a Redis Cluster: a login of a user whose shard is another than that of the session that
 * was there. Three steps (stores/redis/record-writer.ts): `prepare` keeps the place under the new key, END ends the old
 * record, `confirm` makes the new one live; where END finds nothing to end, UNDO takes back what was prepared.
 *
 * Each step is a script on one server. Its answer may be lost and the script sent again, or its caller dies after it or
 * before it. What was prepared goes by itself once its caller can no more confirm it.
 *
 * Left out: what a single slot does (session.pml, user.pml), limits, the cluster's own failovers.
 */
#define NONE 0
#define KEYS 4
/* The session that was there, and the key of each of the two logins. */
#define OLD 1

mtype = { record, prepared, mark, created, gone, conflict, stale_login };

typedef Stored {
  mtype is; /* 0: nothing */
  byte attempt; /* of what is prepared, and of the mark under the old key */
  byte version;
  bit passwordVersion;
};
Stored at[KEYS];
/* Of the user who logs in. */
bit floor;
bit appVersion;

byte lost = 2; /* how many answers may be lost, or callers die */
byte endedBy; /* by whose END the old one ended, or NONE */
bool existed[KEYS]; /* at the call of deleteUser */
bool refused[KEYS], finished[KEYS], succeeded[KEYS];
bool loggedOut, resolved, raisedAfterEnd, undone, again, expired;
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
  /* G4: the old ID is dead before the new one lives. */
  G4_never_the_old_and_the_new = !(lives(OLD) && (lives(2) || lives(3)));
  assert(G4_never_the_old_and_the_new);
  /* G4: of two logins in its place at most one takes it. */
  G4_one_successor_or_none = !(lives(2) && lives(3)) && !(succeeded[2] && succeeded[3]);
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

/* PUT, step `prepare`: decides and keeps the place. (LIVE_WHERE_NOTHING_ENDS is searched with one login: with two of them
   another invariant would fail first. So CONFIRM_WITHOUT_PREPARED with no password version.) */
inline prepare() {
  if
  :: lives(key) -> outcome = created
  :: at[key].is == prepared && at[key].attempt == key -> outcome = prepared
  :: else ->
    if
    :: floor > version -> outcome = stale_login
    :: else ->
#ifdef LIVE_AT_ONCE
      at[key].is = record;
#elif defined(LIVE_WHERE_NOTHING_ENDS)
      at[key].is = (lives(OLD) -> prepared : record);
#else
      at[key].is = prepared;
#endif
      at[key].attempt = key;
      at[key].passwordVersion = version;
      outcome = prepared
    fi
  fi;
  invariants()
}

#ifdef MARK_WITHOUT_ATTEMPT
#define isOwnMark true
#else
#define isOwnMark (at[OLD].attempt == key)
#endif

/* END: decides that the new one becomes live. */
inline end() {
  if
#ifndef NO_MARK
  :: at[OLD].is == mark && isOwnMark -> outcome = mark
#endif
  :: else ->
    if
    :: !lives(OLD) -> outcome = gone
#ifndef END_WITHOUT_VERSION
    :: lives(OLD) && at[OLD].version != oldVersion -> outcome = conflict
#endif
    :: else ->
      /* G2: what was written after the login had read the old record is not lost with it: the call is told. */
      G2_no_lost_update = at[OLD].version == oldVersion;
      assert(G2_no_lost_update);
      forget(OLD);
#ifndef NO_MARK
      at[OLD].is = mark;
      at[OLD].attempt = key;
#endif
      endedBy = key;
      outcome = mark
    fi
  fi;
  invariants()
}

/* PUT, step `confirm`: what this attempt has prepared becomes live. */
inline confirm() {
  if
  :: lives(key) -> outcome = created
#ifndef CONFIRM_WITHOUT_PREPARED
  :: !lives(key) && !(at[key].is == prepared && at[key].attempt == key) -> outcome = gone
#endif
#ifndef FLOOR_AT_PREPARE_ONLY
  :: at[key].is == prepared && floor > version -> forget(key); outcome = stale_login
#endif
  :: else -> at[key].is = record; at[key].attempt = 0; outcome = created
  fi;
  invariants()
}

inline undo() {
  if
  :: at[key].is == prepared && at[key].attempt == key -> forget(key); undone = true
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
  mtype outcome;
  atomic { version = appVersion; oldVersion = at[OLD].version }
  if
  :: oldVersion == 0 -> goto over /* there is nothing to take the place of */
  :: else
  fi;
#ifdef OLD_FIRST
  ONCE_OR_TWICE(end());
  died();
  if
  :: outcome != mark -> goto answer
  :: else
  fi;
  ONCE_OR_TWICE(prepare());
  died();
  if
  :: outcome == stale_login -> goto answer
  :: else
  fi;
#else
  ONCE_OR_TWICE(prepare());
  died();
  if
  :: outcome == stale_login ->
    /* What is to be said of the old session comes first. */
    atomic {
      if
      :: !lives(OLD) -> outcome = gone
      :: lives(OLD) && at[OLD].version != oldVersion -> outcome = conflict
      :: else
      fi
    }
    goto answer
  :: else
  fi;
  ONCE_OR_TWICE(end());
  died();
  if
  :: outcome != mark ->
    if
    :: d_step { undo() }
    :: atomic { lost > 0 -> lost-- } /* it failed: what is prepared goes by itself */
    fi;
    goto answer
  :: else
  fi;
#endif
  ONCE_OR_TWICE(confirm());
  died();
answer:
  atomic {
    /* G4: `gone` is said where another call ended the old one, never to a call that ended it itself. */
    G4_gone_means_that_another_ended_it = outcome != gone || endedBy != key || resolved || expired;
    assert(G4_gone_means_that_another_ended_it);
    /* G7: a login that is refused leaves the session that was there, unless the floor rose after it had ended. */
    G7_a_refused_log_in_ends_nothing = outcome != stale_login || endedBy != key || raisedAfterEnd;
    assert(G7_a_refused_log_in_ends_nothing);
    succeeded[key] = outcome == created;
    refused[key] = outcome != created;
    invariants()
  }
over:
  atomic { outcome = 0; version = 0; oldVersion = 0; finished[key] = true; running-- }
}

/* What is prepared lives as long as its caller could confirm it, and a second. */
proctype Expire(byte key) {
  if
  :: atomic { finished[key] && at[key].is == prepared -> forget(key); expired = true }
  :: true
  fi;
  running--
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

#ifdef FLOOR_AT_PREPARE_ONLY
#define sparesPrepared true
#else
#define sparesPrepared false
#endif
/* `deleteUser` of the user who logs in, with the new password version where the password was changed. */
proctype DeleteUser() {
  bit withVersion;
  if
#ifndef CONFIRM_WITHOUT_PREPARED
  :: true -> withVersion = 1
#endif
  :: true
  fi;
  appVersion = withVersion;
  atomic { existed[2] = lives(2); existed[3] = lives(3) }
  d_step {
    if
    :: lives(2) || (at[2].is == prepared && !sparesPrepared) -> forget(2)
    :: else -> skip
    fi;
    if
    :: lives(3) || (at[3].is == prepared && !sparesPrepared) -> forget(3)
    :: else -> skip
    fi;
    floor = withVersion;
    raisedAfterEnd = raisedAfterEnd || endedBy != NONE;
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
#ifndef LIVE_WHERE_NOTHING_ENDS
    MAY(LogIn(3))
#endif
    MAY(Update()) MAY(LogOut()) MAY(DeleteUser()) MAY(Expire(2))
    calls = 0
  }
  running == 0;
  atomic {
    SCENE(succeeded[2] && refused[3] && undone && lives(2))
    SCENE(succeeded[2] && again && lives(2))
    SCENE(refused[2] && lives(OLD))
    SCENE(refused[2] && raisedAfterEnd && !lives(OLD) && !lives(2))
    SCENE(refused[2] && resolved && !undone && lives(OLD))
    SCENE(finished[2] && !succeeded[2] && !refused[2] && at[2].is == prepared && lives(OLD))
    SCENE(finished[2] && !succeeded[2] && !refused[2] && lives(2))
    SCENE(finished[2] && expired && lives(OLD))
    SCENE(succeeded[2] && resolved && lives(2))
    SCENE(loggedOut && refused[2])
  }
}
