import { create, type People, type Run, replace } from './history.ts';
import { type Usage, use } from './traffic.ts';

/** Amounts for `--large`: 1,000 servers including those of the default seed, and the tools of the largest server. */
export const largeSeed = { servers: 995, tools: 1000, versions: 20, calls: 1_000_000 };
const toolsPerServer = 40;

const areas = ['billing', 'catalog', 'delivery', 'fleet', 'identity', 'payroll', 'research', 'support'] as const;
const verbs = ['list', 'get', 'create', 'update', 'delete'] as const;
const nouns =
  'accounts addresses alerts assets batches budgets campaigns carriers claims comments contracts customers devices documents drivers events forms invoices jobs labels leads licences locations members messages notes orders parcels payments permits plans prices products projects quotes refunds regions reports returns roles routes samples schedules shifts sites suppliers tasks teams tickets vehicles'.split(
    ' ',
  );

/** Returns the name of a server. The first one has a thousand tools. */
const toSlug = (index: number) => (index === 0 ? 'everything' : `${areas[index % areas.length]}-${index}`);

/** Returns a configuration with many tools, as an import would create it. `edits` changes the text of one tool. */
function makeServer(index: number, tools: number, edits = 0) {
  const slug = toSlug(index);
  const isKeyed = index % 10 === 3;
  return {
    slug,
    name: index === 0 ? 'Everything' : `${slug[0]?.toUpperCase()}${slug.slice(1).replace('-', ' ')}`,
    description: `Reads and changes the data of ${slug}.`,
    ...(isKeyed && { authentication: { type: 'Bearer', token: '{{API_TOKEN}}' } }),
    tools: Array.from({ length: tools }, (_, tool) =>
      makeTool(`https://${slug}.example.com`, index + tool, tool === edits && edits > 0),
    ),
  };
}

function makeTool(origin: string, index: number, isEdited: boolean) {
  const [verb = 'list', noun = 'orders'] = [
    verbs[index % verbs.length],
    nouns[Math.floor(index / verbs.length) % nouns.length],
  ];
  const area = areas[Math.floor(index / verbs.length / nouns.length) % areas.length] ?? '';
  const hasId = verb !== 'list' && verb !== 'create';
  const isWrite = verb === 'create' || verb === 'update';
  return {
    name: `${verb}_${area}_${noun}`,
    description: `${verb[0]?.toUpperCase()}${verb.slice(1)} ${noun} of ${area}${isEdited ? ', as they are today' : ''}`,
    method: { list: 'GET', get: 'GET', create: 'POST', update: 'PATCH', delete: 'DELETE' }[verb],
    url: `${origin}/v1/${area}/${noun}${hasId ? '/:id' : ''}`,
    input_schema: {
      ...(hasId && { id: { type: 'string', description: `ID of one of the ${noun}` } }),
      ...(isWrite && { name: { type: 'string', description: 'Name as people see it' } }),
      ...(verb === 'list' && {
        query: { type: 'string', optional: true, description: 'Words to search for' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: 100,
          optional: true,
          default: 20,
          description: 'Maximum number of results',
        },
      }),
    },
  };
}

/** Creates the servers, the largest one in many versions. `setTimeShare` sets the time to a share of the seeded period. */
export async function createManyServers(
  run: Run,
  { ada, bruno }: People,
  setTimeShare: (share: number) => void,
): Promise<void> {
  for (let index = 0; index < largeSeed.servers; index++) {
    setTimeShare(index / largeSeed.servers);
    await create(run, bruno, makeServer(index, index === 0 ? largeSeed.tools : toolsPerServer));
    if (index % 3 === 0)
      await run(ada, 'setServerTags', {
        slug: toSlug(index),
        tags: [index % 2 ? 'test' : 'production', `team ${index % 7}`],
      });
  }
  for (let version = 1; version < largeSeed.versions; version++) {
    setTimeShare(version / largeSeed.versions);
    await replace(run, bruno, makeServer(0, largeSeed.tools, version));
  }
}

/** Returns the usage of the tools on these servers: some rarely, most never. */
export function makeManyUsages(): Usage[] {
  return Array.from({ length: largeSeed.servers }, (_, index) => {
    const { slug, tools } = makeServer(index, index === 0 ? 200 : 8);
    const server = { slug, host: `${slug}.example.com` };
    return tools.map(({ name }) => use(server, name, [1, 120, 1500], { upstream_status: 30, timeout: 5, limited: 3 }));
  }).flat();
}
