/*
 * One session: its logout and a login beside new IDs and updates, with answers that are lost and calls that die.
 * The names are those of src/contract/store.ts (is, version, writeId, movedTo) and src/manager (find, rotate, logIn).
 *
 * Every verb of a store is one step, but for `delete`: STORE_SQL takes one statement for each place where the session
 * may be (stores/sql/base/store.ts), without it one script looks at one place, and the last one removes what led there (DELETE in stores/redis/scripts.ts).
 *
 * Left out: expiry, TTLs of forwards, what the memory of one process knows (endings), the users' indexes (user.pml).
 */
#define NONE 0
#define KEYS 5
/* The ID that the browser has; then the one that each of the three gets who ask for a new one. */
#define FIRST 1
#define ROTATED 2
#define REGENERATED 3
#define LOGGED_IN 4

/* Who is logged in: the session that was there, or the one of the new login. */
#define BEFORE 1
#define AFTER 2

mtype = { record, forward, created, updated, conflict, gone };

typedef Stored {
  mtype is; /* 0: nothing */
  byte login;
  byte version;
  byte writeId;
  byte data; /* how many updates are in it */
  byte movedTo;
  bool salted; /* of a forward: whether a visitor may follow it */
};
Stored at[KEYS];

byte lost = 1; /* how many answers may still be lost */
byte acknowledged; /* updates */
bool loggedOut, loggedIn, endingBegan, regenerated;
bool told[KEYS];
/* Another write came between an update and its repetition: the record keeps the last write ID alone. */
bool unrecognised;
byte running;
/* How many calls go on at once, of six; every choice of them is searched. */
#ifndef CALLS
#define CALLS 4
#endif
byte calls = CALLS;

#define lives(k, who) (at[k].is == record && at[k].login == who)
#define alive(who) (lives(1, who) || lives(2, who) || lives(3, who) || lives(4, who))
#define howMany(who) (lives(1, who) + lives(2, who) + lives(3, who) + lives(4, who))

/* Each is true in every state of a sound protocol; the search names the one that is not. */
bool G1_destroyed_stays_destroyed = true;
bool G2_no_lost_update = true;
bool G4_one_successor_or_none = true;
bool G4_the_old_id_is_dead = true;
bool G7_a_lost_answer_is_not_a_log_out = true;

/* What holds in each moment. */
inline invariants() {
  /* G1: no write revives what a logout has ended, under whatever ID it went on. */
  G1_destroyed_stays_destroyed = !(loggedOut && alive(BEFORE));
  assert(G1_destroyed_stays_destroyed);
  /* G4: parallel requests for a new ID end in one successor or in none. */
  G4_one_successor_or_none = howMany(BEFORE) <= 1;
  assert(G4_one_successor_or_none);
  /* G4: after a login the session that was there is dead, and its ID leads to no other. */
  G4_the_old_id_is_dead = !(loggedIn && (alive(BEFORE) || (at[FIRST].is == forward && at[FIRST].salted && lives(at[FIRST].movedTo, AFTER))));
  assert(G4_the_old_id_is_dead);
  /* G2: what was acknowledged is in the data, also during a new ID. */
  G2_no_lost_update = !(lives(1, BEFORE) && at[1].data < acknowledged) && !(lives(2, BEFORE) && at[2].data < acknowledged) &&
    !(lives(3, BEFORE) && at[3].data < acknowledged);
  assert(G2_no_lost_update)
}

/* `find`: the record that a visitor's ID leads to, each hop a read of its own; key is NONE where there is none. */
inline find(start) {
  key = start;
  do
  :: atomic { at[key].is == record -> version = at[key].version; data = at[key].data; break }
  :: atomic { at[key].is == forward && at[key].salted -> key = at[key].movedTo }
  :: atomic { at[key].is == 0 || (at[key].is == forward && !at[key].salted) -> key = NONE; version = 0; data = 0; break }
  od
}

inline replace(newKey, login_, data_, leaves, salt) {
  if
#ifndef NO_WRITE_ID
  :: at[newKey].is == record && at[newKey].writeId == newKey -> outcome = created
#endif
  :: else ->
    if
    :: at[key].is != record -> outcome = gone
#ifndef REPLACE_WITHOUT_VERSION
    :: at[key].is == record && at[key].version != version -> outcome = conflict
#endif
    :: else ->
      at[newKey].is = record;
      at[newKey].login = login_;
      at[newKey].version = 1;
      at[newKey].writeId = newKey;
      at[newKey].data = data_;
#ifndef OLD_STAYS
      at[key].login = 0;
      at[key].version = 0;
      at[key].writeId = 0;
      at[key].data = 0;
      if
#ifndef NO_FORWARD
      :: leaves -> at[key].is = forward; at[key].movedTo = newKey; at[key].salted = salt
#endif
      :: else -> at[key].is = 0
      fi;
#endif
      outcome = created
    fi
  fi;
  invariants()
}

inline update() {
  if
#ifndef NO_WRITE_ID
  :: at[key].is == record && at[key].version == version + 1 && at[key].writeId == writeId -> outcome = updated
#endif
#ifdef UPDATE_REVIVES
  :: at[key].is == 0 -> at[key].is = record; at[key].login = BEFORE; at[key].version = version + 1; at[key].data = data + 1; outcome = updated
#endif
  :: else ->
    if
    :: at[key].is != record -> outcome = gone
    :: at[key].is == record && at[key].version != version -> outcome = conflict
    :: else ->
      at[key].version++;
      at[key].writeId = writeId;
      at[key].data = data + 1;
      outcome = updated
    fi
  fi;
  invariants()
}

/* `regenerate` (no grace) and `rotate` (a grace, in which visitors follow the forward). */
proctype Renew(byte newKey; bool grace) {
  byte key, version, data;
  mtype outcome;
  find(FIRST);
  do
  :: key == NONE -> break
  :: key != NONE && key != FIRST && grace -> told[key] = true; break /* a parallel request rotated it */
  :: else ->
    d_step { replace(newKey, BEFORE, data, true, grace) };
    if
    :: atomic { lost > 0 -> lost--; outcome = 0 }; d_step { replace(newKey, BEFORE, data, true, grace) }
    :: true
    fi;
    if
    :: outcome == created -> told[newKey] = true; regenerated = regenerated || !grace; break
    :: else -> find(FIRST)
    fi
  od;
  key = 0; version = 0; data = 0; outcome = 0;
  running--
}

/* One that was refused wrote nothing: all attempts of a call may have one write ID. */
proctype Update(byte writeId) {
  byte key, version, data;
  mtype outcome;
  find(FIRST);
  do
  :: key == NONE -> break
  :: else ->
    d_step { update() };
    if
    :: atomic { lost > 0 -> lost--; outcome = 0 }; d_step { update(); unrecognised = unrecognised || outcome != updated }
    :: true
    fi;
    if
    :: atomic { outcome == updated -> acknowledged++; invariants(); break }
    :: else -> find(FIRST)
    fi
  od;
  key = 0; version = 0; data = 0; outcome = 0;
  running--
}

#ifdef FORWARD_NOT_FOLLOWED
#define forwardIsTheEnd true
#else
#define forwardIsTheEnd false
#endif
/* `delete(FIRST)`. Where it dies, `died` is true, and nothing is acknowledged. */
#ifdef STORE_SQL
inline delete() {
  key = FIRST;
  do
  :: true ->
    d_step {
      ended = (at[key].is == record);
      if
      :: ended -> at[key].is = 0; at[key].login = 0; at[key].version = 0; at[key].writeId = 0; at[key].data = 0
      :: else -> skip
      fi
    };
    mayDie();
    if
    :: ended || died -> break
    :: else -> skip
    fi;
    if
    :: atomic { at[key].is == 0 -> break }
    :: atomic { at[key].is == record -> skip } /* made between the two statements: another turn */
#ifndef FORWARD_NOT_FOLLOWED
    :: atomic { at[key].is == forward -> passed[key] = true; version = at[key].movedTo;
#ifdef FORWARDS_FIRST
         at[key].is = 0; at[key].movedTo = 0; at[key].salted = false;
#endif
         key = version; version = 0 }
#else
    :: atomic { at[key].is == forward -> break }
#endif
    fi
  od;
  /* The forwards go last: a call that fails before and is repeated still finds its way. */
  key = FIRST;
  do
  :: died || key == KEYS -> break
  :: !died && key < KEYS && passed[key] ->
    d_step { at[key].is = 0; at[key].movedTo = 0; at[key].salted = false; passed[key] = false };
    key++;
    mayDie()
  :: !died && key < KEYS && !passed[key] -> key++
  od;
  atomic { passed[1] = false; passed[2] = false; passed[3] = false; passed[4] = false; ended = false; key = 0 }
}
#else
inline delete() {
  /* A script for each place; where it meets a forward it answers where that leads. The last one removes the forwards. */
  key = FIRST;
  do
  :: atomic { at[key].is != forward || forwardIsTheEnd ->
      d_step {
        at[key].is = 0; at[key].login = 0; at[key].version = 0; at[key].writeId = 0; at[key].data = 0;
        at[key].movedTo = 0; at[key].salted = false;
        key = FIRST;
        do
        :: key < KEYS && passed[key] -> at[key].is = 0; at[key].movedTo = 0; at[key].salted = false; passed[key] = false; key++
        :: key < KEYS && !passed[key] -> key++
        :: else -> break
        od
      }; break }
  :: atomic { at[key].is == forward && !forwardIsTheEnd -> passed[key] = true; key = at[key].movedTo }; mayDie();
    if
    :: died -> break
    :: else -> skip
    fi
  od;
  atomic { passed[1] = false; passed[2] = false; passed[3] = false; passed[4] = false; ended = false; key = 0 }
}
#endif

inline mayDie() {
  if
  :: atomic { lost > 0 -> lost--; died = true }
  :: true
  fi
}

/* A logout: where its call dies, the browser keeps the cookie and repeats it. */
proctype LogOut() {
  byte key, version;
  bool ended, died, passed[KEYS];
  endingBegan = true;
  delete();
  if
  :: died -> died = false; delete()
  :: else
  fi;
  atomic { loggedOut = true; invariants() }
  running--
}

/* A login with the old cookie. It takes the place of the session that is there; where that is gone, it ends whatever the
   old ID leads to, and begins by itself. */
proctype LogIn() {
  byte key, version, data;
  bool ended, died, passed[KEYS];
  mtype outcome;
  endingBegan = true;
  find(FIRST);
  do
  :: key == NONE ->
    delete();
    if
    :: died -> break /* rejected: not logged in */
    :: else -> skip
    fi;
    atomic { at[LOGGED_IN].is = record; at[LOGGED_IN].login = AFTER; at[LOGGED_IN].version = 1; loggedIn = true; invariants(); break }
  :: else ->
#ifdef LOG_IN_LEAVES_FORWARD
    d_step { replace(LOGGED_IN, AFTER, 0, true, true) };
#else
    d_step { replace(LOGGED_IN, AFTER, 0, false, false) };
#endif
    if
    :: atomic { lost > 0 -> lost--; outcome = 0 };
      d_step { replace(LOGGED_IN, AFTER, 0, false, false) }
    :: true
    fi;
    if
    :: atomic { outcome == created -> loggedIn = true; invariants(); break }
    :: else -> find(FIRST)
    fi
  od;
  key = 0; version = 0; data = 0; outcome = 0; died = false;
  running--
}

/* A scene that the search has to meet: an invariant about what never happens proves nothing. */
#define SCENE(condition) if :: condition -> printf("met\n") :: else fi

#define MAY(call) if :: calls > 0 -> calls--; running++; run call :: true fi;

init {
  atomic {
    at[FIRST].is = record; at[FIRST].login = BEFORE; at[FIRST].version = 1; told[FIRST] = true;
    MAY(Renew(ROTATED, true)) MAY(Renew(REGENERATED, false)) MAY(Update(KEYS)) MAY(Update(KEYS + 1)) MAY(LogOut()) MAY(LogIn())
    calls = 0
  }
  running == 0;
  atomic {
    /* G2: nothing counts twice either, where an answer was lost and the call sent again. */
    G2_no_lost_update = unrecognised || (!(lives(1, BEFORE) && at[1].data != acknowledged) &&
      !(lives(2, BEFORE) && at[2].data != acknowledged) && !(lives(3, BEFORE) && at[3].data != acknowledged));
    assert(G2_no_lost_update);
    /* G7: where nothing ended the session, it lives under an ID that a caller was told. */
    G7_a_lost_answer_is_not_a_log_out = endingBegan || (lives(1, BEFORE) && told[1]) || (lives(2, BEFORE) && told[2]) || (lives(3, BEFORE) && told[3]);
    assert(G7_a_lost_answer_is_not_a_log_out);
    SCENE(at[FIRST].is == forward && lives(ROTATED, BEFORE) && at[ROTATED].data == 2)
    SCENE(at[FIRST].is == forward && at[ROTATED].is == forward && lives(REGENERATED, BEFORE))
    SCENE(loggedOut && told[ROTATED] && at[ROTATED].is == 0)
    SCENE(loggedOut && !loggedIn && told[ROTATED] && told[REGENERATED])
    SCENE(loggedIn && !loggedOut && regenerated)
    SCENE(loggedIn && loggedOut && lives(LOGGED_IN, AFTER))
    SCENE(!endingBegan && lost == 0 && acknowledged == 2)
    SCENE(!endingBegan && acknowledged == 0)
  }
}
