/*
 * Logout-everywhere: `deleteUser` and the end of a series beside logins, new IDs, remember tokens that are used and
 * tokens that are issued. The names are those of src/contract/store.ts and src/manager (recall, issueToken,
 * endSeries).
 *
 * `create`, `replace` and `delete` are one step each (session.pml has the steps of `delete`). `deleteUser` is what the
 * stores do: members of an index in chunks, and a last script that ends what is left of them, and says `again` while the
 * index names others (stores/redis/store.ts), or with STORE_SQL pieces under the lock of the user's row
 * (stores/sql/base/store.ts; locks.pml has the locks).
 *
 * Left out: versions and data (session.pml), expiry, limits, several users.
 */
#define NONE 0
#define KEYS 8
#define SESSION 1
/* The same session under a new ID. */
#define RENEWED 2
#define SERIES 3
/* Begun with a token of the series, and the same under a new ID. */
#define RECALLED 4
#define RECALLED_RENEWED 5
/* The series that the user of the session asks for. */
#define ISSUED 6
#define LOGGED_IN 7

mtype = { record, forward, created, gone, stale_login, orphan };

typedef Stored {
  mtype is; /* 0: nothing */
  bool remember; /* kind */
  byte parent;
  bit passwordVersion;
  byte movedTo;
};
Stored at[KEYS];
/* The user's index: a superset of the living. In SQL it is the table itself. */
bool indexed[KEYS];
bit floor;

/* The password version that the application has. */
bit appVersion;
/* Existed when deleteUser was called, or was derived from what did. */
bool doomed[KEYS];
bool withVersion, withExcept; /* options of deleteUser: passwordVersion, exceptKey */
bool called, resolved, seriesEnded;
/* The store fails once while a series ends, and the call is repeated. */
bool mayFail, failed;
bool stale, orphaned, passed, chunked, again, followed;
byte running;
/* How many calls go on at once, of eight, a failure of the store among them; every choice of them is searched. */
#ifndef CALLS
#define CALLS 5
#endif
byte calls = CALLS;

#define lives(k) (at[k].is == record)
#define livesDoomed(k) (lives(k) && doomed[k])
#define livesOutdated(k) (lives(k) && at[k].passwordVersion == 0)
#define livesOfSeries(k) (lives(k) && (k == SERIES || at[k].parent == SERIES))
#define some(which) (which(1) || which(2) || which(3) || which(4) || which(5) || which(6) || which(7))

bool G3_log_out_everywhere_is_complete = true;
bool G3_no_stale_log_in = true;
bool G3_the_excepted_session_goes_on = true;
bool G3_what_a_series_began_ends_with_it = true;

inline invariants() {
  /* G3: what existed when it was called is dead, and everything derived from it meanwhile. */
  G3_log_out_everywhere_is_complete = !(resolved && some(livesDoomed));
  assert(G3_log_out_everywhere_is_complete);
  /* G3: a login that verified an older password gets no session, even if it finishes later. */
  G3_no_stale_log_in = !(resolved && withVersion && some(livesOutdated));
  assert(G3_no_stale_log_in);
  /* G3: `exceptKey` survives, also where it gets a new ID while deleteUser runs. */
  G3_the_excepted_session_goes_on = !withExcept || lives(SESSION) || lives(RENEWED);
  assert(G3_the_excepted_session_goes_on);
  /* G3: after a logout or a theft nothing lives that a token of the series began. */
  G3_what_a_series_began_ends_with_it = !(seriesEnded && some(livesOfSeries));
  assert(G3_what_a_series_began_ends_with_it)
}

inline put(k, isRemember, parentKey, version) {
  at[k].is = record;
  at[k].remember = isRemember;
  at[k].parent = parentKey;
  at[k].passwordVersion = version;
  indexed[k] = true
}

inline remove(k) {
  at[k].is = 0;
  at[k].remember = 0;
  at[k].parent = 0;
  at[k].passwordVersion = 0;
  at[k].movedTo = 0
}

#ifdef NO_FLOOR
#define isBelowFloor(version) false
#else
#define isBelowFloor(version) (floor > version)
#endif
#ifdef NO_PARENT_CHECK
#define isOrphan(parentKey) false
#else
#define isOrphan(parentKey) (parentKey != NONE && !lives(parentKey))
#endif

inline create(k, isRemember, parentKey, version) {
  d_step {
    if
    :: isBelowFloor(version) -> outcome = stale_login; stale = true
    :: !isBelowFloor(version) && isOrphan(parentKey) -> outcome = orphan; orphaned = true
    :: else ->
      put(k, isRemember, parentKey, version);
      doomed[k] = parentKey != NONE && doomed[parentKey];
      outcome = created;
      passed = true
    fi;
    invariants()
  }
}

/* `delete`: the record, or where a forward leads. */
inline delete(k) {
  d_step {
    if
    :: at[k].is == forward ->
      remove(at[k].movedTo);
      remove(k)
    :: else -> remove(k)
    fi;
    invariants()
  }
}

/* A new ID for the same session: a forward stays. */
proctype Renew(byte oldKey, newKey) {
  d_step {
    if
    :: lives(oldKey) && !isBelowFloor(at[oldKey].passwordVersion) ->
      put(newKey, false, at[oldKey].parent, at[oldKey].passwordVersion);
      doomed[newKey] = doomed[oldKey];
      remove(oldKey);
      at[oldKey].is = forward;
      at[oldKey].movedTo = newKey;
      indexed[oldKey] = false
    :: else -> skip
    fi;
    invariants()
  }
  running--
}

/* `recall`: the series is read, and a session begins with it. */
proctype Recall() {
  bit version;
  mtype outcome;
  if
  :: atomic { lives(SERIES) -> version = at[SERIES].passwordVersion }; create(RECALLED, false, SERIES, version)
  :: atomic { !lives(SERIES) -> skip }
  fi;
  outcome = 0;
  version = 0;
  running--
}

/* `issueToken`: a series for the device of a session that was read before. */
proctype Issue() {
  byte key;
  bit version;
  mtype outcome;
  if
  :: atomic { lives(SESSION) -> key = SESSION; version = at[SESSION].passwordVersion }
  :: atomic { lives(RENEWED) -> key = RENEWED; version = at[RENEWED].passwordVersion }
  :: atomic { !lives(SESSION) && !lives(RENEWED) -> key = NONE }
  fi;
  if
  :: key != NONE -> create(ISSUED, true, key, version)
  :: else
  fi;
  outcome = 0;
  key = NONE;
  version = 0;
  running--
}

/* A login: the version is read together with the hash that is verified. */
proctype LogIn() {
  bit version;
  mtype outcome;
  version = appVersion;
  create(LOGGED_IN, false, NONE, version);
  outcome = 0;
  version = 0;
  running--
}

/* `listUser`: in Redis the index first, then what stands under the keys that it named. */
#ifdef STORE_SQL
inline list() {
  d_step {
    k = 1;
    do
    :: k < KEYS -> child[k] = lives(k) && at[k].parent == SERIES; k++
    :: else -> break
    od;
    k = 0
  }
}
#else
inline list() {
  d_step {
    k = 1;
    do
    :: k < KEYS -> named[k] = indexed[k]; k++
    :: else -> break
    od;
    k = 0
  }
  d_step {
    k = 1;
    do
    :: k < KEYS ->
      child[k] = child[k] || (named[k] && lives(k) && at[k].parent == SERIES);
#ifndef LIST_WITHOUT_FORWARDS
      /* A record that got a new ID in between is read under that one. */
      if
      :: named[k] && at[k].is == forward && lives(at[k].movedTo) && at[at[k].movedTo].parent == SERIES -> child[at[k].movedTo] = true
      :: else -> skip
      fi;
#endif
      named[k] = false;
      k++
    :: else -> break
    od;
    k = 0
  }
}
#endif

/* The caller gets an error, and calls again. What the call had learnt is lost. */
#define FAIL if :: mayFail && !failed -> d_step { failed = true; forgetChildren() }; goto attempt :: true fi

inline forgetChildren() {
  k = 1;
  do
  :: k < KEYS -> child[k] = false; k++
  :: else -> break
  od;
  k = 0
}

inline endChildren() {
  list();
  do
  :: k < KEYS && child[k] -> FAIL; delete(k); child[k] = false; k++
  :: k < KEYS && !child[k] -> k++
  :: k == KEYS -> break
  od;
  k = 0
}

/*
 * The end of a series by a logout or by a theft: what it began, the series, and what it began meanwhile. The caller has a
 * token, and so the key of the series. If the store fails once the series is gone, a repeated call finds nothing, and nothing
 * is promised of what began in that moment.
 */
proctype EndSeries() {
  bool named[KEYS], child[KEYS];
  byte k;
  bool found;
attempt:
  found = lives(SERIES);
  if
  :: found ->
    FAIL;
    endChildren();
    FAIL;
    delete(SERIES);
#ifndef ONE_LOOK
    FAIL;
    endChildren();
#endif
    atomic { seriesEnded = true; invariants() }
  :: else ->
    /* Another call ended it, and is repeated where it fails. */
    skip
  fi;
  found = false;
  running--
}

#ifdef SERIES_SPARED
#define spared(k) at[k].remember
#else
#define spared(k) false
#endif

inline raiseFloor() {
  floor = (withVersion -> 1 : floor)
}

/* A member leaves the index, and its record ends; what a new ID left there stays. */
inline end(m) {
  if
  :: lives(m) -> remove(m)
  :: else -> skip
  fi;
  indexed[m] = false
}

#ifdef STORE_SQL
/* Pieces of one record each, under the lock of the user's row. One that finds nothing more is the last. */
inline deleteUser() {
  do
  :: true ->
    d_step {
#ifndef DELETE_BEFORE_FLOOR
      raiseFloor();
#endif
#ifndef EXCEPT_NOT_FOLLOWED
      if
      :: except != NONE && at[except].is == forward -> except = at[except].movedTo; followed = true
      :: else -> skip
      fi;
#endif
      k = 1;
      do
      :: k < KEYS && (k == except || !lives(k) || spared(k)) -> k++
      :: else -> break
      od;
      found = k < KEYS;
      if
      :: found -> end(k); chunked = true
      :: else -> skip
      fi;
      k = 0
    }
    if
    :: found -> found = false
    :: else -> break
    fi
  od;
#ifdef DELETE_BEFORE_FLOOR
  raiseFloor();
#endif
  atomic { except = NONE; resolved = true; invariants() }
}
#else
/* `moved`: where the excepted session was replaced, the script names the next key and ends nothing before it has it. */
inline follow() {
#ifndef EXCEPT_NOT_FOLLOWED
  if
  :: except != NONE && at[except].is == forward -> except = at[except].movedTo; followed = true
  :: else -> skip
  fi
#else
  skip
#endif
}

inline part(m) {
  d_step {
    follow();
    if
    :: m != except -> end(m)
    :: else -> skip
    fi;
    member[m] = false;
    members--
  }
}

#define CHUNK 1
inline deleteUser() {
  do
  :: true ->
    /* More members than one script should end are ended in chunks, in any order. */
    if
    :: members > CHUNK ->
      chunked = true;
      do
      :: members > 0 && member[1] -> part(1)
      :: members > 0 && member[2] -> part(2)
      :: members > 0 && member[3] -> part(3)
      :: members > 0 && member[4] -> part(4)
      :: members > 0 && member[5] -> part(5)
      :: members > 0 && member[6] -> part(6)
      :: members > 0 && member[7] -> part(7)
      :: members == 0 -> break
      od
    :: else
    fi;
    /* Ends what it was given, and raises the floor unless the index names others. */
    atomic {
      follow();
      k = 1;
      do
      :: k < KEYS ->
        if
        :: member[k] && k != except -> end(k)
        :: else -> skip
        fi;
        member[k] = false;
        k++
      :: else -> break
      od;
      k = 1;
      members = 0;
      do
#ifdef INDEX_READ_ONCE
      :: k < KEYS && asked -> k++
#endif
      :: k < KEYS && indexed[k] && k != except && !spared(k) -> member[k] = true; members++; found = true; k++
      :: else ->
        if
        :: k < KEYS -> k++
        :: else -> break
        fi
      od;
      again = again || (asked && found);
      asked = true;
      k = 0;
#ifndef DELETE_BEFORE_FLOOR
      if
      :: !found -> raiseFloor()
      :: else -> skip
      fi
#endif
    }
    if
    :: found -> found = false
    :: else -> break
    fi
  od;
#ifdef DELETE_BEFORE_FLOOR
  raiseFloor();
#endif
  atomic { except = NONE; asked = false; resolved = true; invariants() }
}
#endif
proctype DeleteUser() {
  bool member[KEYS];
  byte members, except, k;
  bool found, asked;
  d_step {
    if
    :: withVersion -> appVersion = 1
    :: else -> skip
    fi;
    except = (withExcept -> SESSION : NONE)
  }
  d_step {
    called = true;
    k = 1;
    do
    :: k < KEYS -> doomed[k] = lives(k) && !(withExcept && (k == SESSION || k == RENEWED)); k++
    :: else -> break
    od;
    k = 0
  }
  deleteUser();
  running--
}

#define SCENE(condition) if :: condition -> printf("met\n") :: else fi

#define MAY(call) if :: calls > 0 -> calls--; running++; run call :: true fi;

init {
  atomic {
    if
    :: withVersion = true
    :: true
    fi;
    if
    :: withExcept = true
    :: true
    fi;
    /* Who changes the password logs in with the new version first, and is excepted then. */
    d_step {
      put(SESSION, false, NONE, withExcept);
      put(SERIES, true, NONE, 0);
      appVersion = withExcept && withVersion
    }
    MAY(Renew(SESSION, RENEWED)) MAY(Renew(RECALLED, RECALLED_RENEWED)) MAY(Recall()) MAY(Issue()) MAY(LogIn())
    MAY(EndSeries()) MAY(DeleteUser())
    if
    :: calls > 0 -> calls--; mayFail = true
    :: true
    fi;
    calls = 0
  }
  running == 0;
  atomic {
    SCENE(stale && resolved)
    SCENE(orphaned && resolved && !seriesEnded)
    SCENE(orphaned && seriesEnded && !called)
    SCENE(resolved && chunked && again)
    SCENE(resolved && withExcept && followed && lives(RENEWED))
    SCENE(resolved && withVersion && lives(LOGGED_IN))
    SCENE(resolved && doomed[RECALLED_RENEWED] && !seriesEnded)
    SCENE(resolved && !withExcept && !withVersion && lives(LOGGED_IN))
    SCENE(seriesEnded && !called && at[RECALLED].is == 0 && lives(RENEWED))
    SCENE(!called && !seriesEnded && lives(RECALLED_RENEWED) && lives(ISSUED))
    SCENE(seriesEnded && failed && orphaned)
  }
}
