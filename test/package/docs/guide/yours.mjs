// @ts-nocheck: it stands around blocks of docs/guide/, which leave these functions to their reader.
// biome-ignore-all lint/correctness/noUnusedVariables: the blocks use them
const yours = async (...given) => given[0]
const [checkCode, pay, findUser, ordersOf, exchangeCode, userOf] = Array(6).fill(yours)
const [sendMail, checkPassword, text] = Array(3).fill(yours)
const pool = { query: yours }
const isSupport = () => true
/* the block */
