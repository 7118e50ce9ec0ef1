// Databases for examples/kv-store.mjs: Deno KV in a file, and dynalite, a server that speaks as DynamoDB does.
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { denoDriver, dynamoDriver } from '../../../examples/kv-drivers.mjs'
import type { Driver } from '../../../examples/kv-store.mjs'
import { memoryFolder } from './memory-folder.ts'
import { freePort } from './port.mjs'

const drivers = createRequire(new URL('../drivers/package.json', import.meta.url))

export interface KeyValues {
  /** A connection of its own. */
  connect(): Promise<Driver>
  stop(): Promise<void>
}

export async function openDenoKv(): Promise<KeyValues> {
  const { openKv } = drivers('@deno/kv')
  const folder = memoryFolder('deno')
  const opened: { close(): void }[] = []
  return {
    async connect() {
      const kv = await openKv(join(folder, 'kv.db'))
      opened.push(kv)
      return denoDriver(kv)
    },
    async stop() {
      for (const kv of opened) kv.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const TableName = 'sessions'

export async function startDynalite(): Promise<KeyValues> {
  // Its warning of the end of Node.js 20.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true'
  const { DynamoDB } = drivers('@aws-sdk/client-dynamodb')
  const server = drivers('dynalite')({ createTableMs: 0 })
  // One that is closed while it is idle would look as an outage to who just sends.
  server.keepAliveTimeout = 0
  const port = await freePort()
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  const clients: { destroy(): void }[] = []
  const open = () => {
    const client = new DynamoDB({
      endpoint: `http://127.0.0.1:${port}`,
      region: 'local',
      credentials: { accessKeyId: 'none', secretAccessKey: 'none' },
      // The suite reads 5,000 at once.
      requestHandler: { socketAcquisitionWarningTimeout: 600_000 },
    })
    clients.push(client)
    return client
  }
  await open().createTable({
    TableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
  })
  const busy = new Set<string>()
  return {
    connect: async () => dynamoDriver(withTransactions(open(), busy), TableName),
    async stop() {
      for (const client of clients) client.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

interface Write {
  readonly Key?: { readonly id: { readonly S: string } }
  readonly Item?: { readonly id: { readonly S: string } }
  readonly ConditionExpression?: string
  readonly ExpressionAttributeValues?: { readonly ':v': { readonly S: string } }
}
type Transaction = { readonly [Kind in 'ConditionCheck' | 'Delete' | 'Put']?: Write }[]

const idOf = ({ Key, Item }: Write) => (Key ?? Item)!.id.S
const failure = (name: string, more: object = {}) => Object.assign(new Error(name), { name, ...more })
const cancelled = (Codes: string[]) =>
  failure('TransactionCanceledException', { CancellationReasons: Codes.map(Code => ({ Code })) })

/**
 * dynalite has no transactions, so they are put together here from what it has: its reads see one that is half done, as those of
 * several items do in DynamoDB. And as there, what is under way on an item refuses all else.
 */
function withTransactions(client: any, busy: Set<string>) {
  async function alone<T>(ids: string[], refusal: (taken: boolean[]) => Error, run: () => Promise<T>): Promise<T> {
    const taken = ids.map(id => busy.has(id))
    if (taken.includes(true)) throw refusal(taken)
    for (const id of ids) busy.add(id)
    try {
      return await run()
    } finally {
      for (const id of ids) busy.delete(id)
    }
  }
  const single = (method: 'putItem' | 'deleteItem') => (write: Write) =>
    alone(
      [idOf(write)],
      () => failure('TransactionConflictException'),
      () => client[method](write),
    )
  return {
    batchGetItem: (input: object) => client.batchGetItem(input),
    putItem: single('putItem'),
    deleteItem: single('deleteItem'),
    async transactWriteItems({ TransactItems }: { TransactItems: Transaction }) {
      const writes = TransactItems.map(each => Object.values(each)[0]!)
      const ids = writes.map(idOf)
      if (ids.length > 100 || new Set(ids).size < ids.length) throw failure('ValidationException')
      const refusal = (taken: boolean[]) => cancelled(taken.map(is => (is ? 'TransactionConflict' : 'None')))
      await alone(ids, refusal, async () => {
        const { Responses } = await client.batchGetItem({
          RequestItems: { [TableName]: { Keys: ids.map(id => ({ id: { S: id } })), ConsistentRead: true } },
        })
        const versions = new Map<string, string>(Responses[TableName].map(({ id, v }: any) => [id.S, v.S]))
        const fits = writes.map(({ ConditionExpression: wanted, ExpressionAttributeValues: values }, at) => {
          const version = versions.get(ids[at]!)
          if (wanted === undefined) return true
          return wanted === 'attribute_not_exists(id)' ? version === undefined : version === values![':v'].S
        })
        if (fits.includes(false)) throw cancelled(fits.map(is => (is ? 'None' : 'ConditionalCheckFailed')))
        const requests = TransactItems.flatMap(({ Put, Delete }) =>
          Put ? { PutRequest: { Item: Put.Item } } : Delete ? { DeleteRequest: { Key: Delete.Key } } : [],
        )
        while (requests.length > 0)
          await client.batchWriteItem({ RequestItems: { [TableName]: requests.splice(0, 25) } })
      })
    },
  }
}
