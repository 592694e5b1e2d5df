import { asText, entriesOf, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { addQuery, listSentHeaders, readPairs, toDescribedInputs, toFormFields } from './pairs.ts';
import { collectVariables } from './placeholders.ts';
import { makeGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

/** Returns true for an export of format 4, which is a flat list, or a document of format 5, which is a tree. */
export function isInsomnia(root: unknown): root is JsonFields {
  if (!isFields(root)) return false;
  return (root._type === 'export' && Array.isArray(root.resources)) || /\binsomnia\b.*\/5/.test(asText(root.type));
}

/** Returns the OpenAPI document inside a design document, as a text or a value; undefined if there is none. */
export function findInsomniaSpec(root: JsonFields): unknown {
  const inList = listOf(root.resources).find((one) => field(one, '_type') === 'api_spec');
  const spec = field(inList, 'contents') ?? field(root.spec, 'contents');
  return isFields(spec) || asText(spec).trim() !== '' ? spec : undefined;
}

/** Request or folder, with its ancestors. */
type Node = {
  item: JsonFields;
  at: string;
  /** Folder names, outermost first. */
  folders: readonly string[];
  /** Folders, innermost first. */
  above: readonly JsonFields[];
};

const maxFolders = 20;

export function readInsomnia(root: JsonFields): ApiDescription {
  const isList = Array.isArray(root.resources);
  const findings: Finding[] = [];
  const nodes = isList
    ? nodesOfList(root.resources)
    : nodesOfTree(root.collection, { folders: [], above: [], at: 'collection' });
  const requests = nodes.flatMap((node) => requestOf(node, findings));
  const workspace = isList ? listOf(root.resources).find((one) => field(one, '_type') === 'workspace') : root;
  const title = asText(field(workspace, 'name')) || findHostTitle(requests, 'Insomnia');
  const description = asText(field(workspace, 'description')) || asText(field(root.meta, 'description'));
  const environments = isList ? environmentsOfList(root.resources) : environmentsOfTree(root.environments);
  const ofFolders = nodes.flatMap(({ above }) => above.flatMap(({ environment }) => flatValues(environment)));
  const variables = collectVariables([...environments, ...ofFolders]);
  return describeRequests(
    requests,
    { format: 'Insomnia', version: isList ? '4' : '5', title, description, variables },
    findings,
  );
}

/** Reads the requests of a flat list, in which each entry names its parent. */
function nodesOfList(resources: unknown): Node[] {
  const all = listOf(resources).filter(isFields);
  const byId = new Map(all.map((one) => [asText(one._id), one]));
  const requests = all.filter(({ _type: type }) => /request$/.test(asText(type)));
  const inOrder = requests.toSorted((a, b) => Number(asText(a.metaSortKey)) - Number(asText(b.metaSortKey)));
  return inOrder.map((item) => {
    const above: JsonFields[] = [];
    for (let id = asText(item.parentId); above.length < maxFolders; ) {
      const folder = byId.get(id);
      if (folder?._type !== 'request_group') break;
      above.push(folder);
      id = asText(folder.parentId);
    }
    const folders = above.map(({ name }) => asText(name)).toReversed();
    return { item, folders, above, at: `resources ${asText(item._id) || asText(item.name)}` };
  });
}

function nodesOfTree(items: unknown, { folders, above, at }: Omit<Node, 'item'>): Node[] {
  return listOf(items).flatMap((item, index): Node[] => {
    const here = `${at}[${index}]`;
    if (!isFields(item)) return [];
    if (!Array.isArray(item.children)) return [{ item, folders, above, at: here }];
    if (folders.length >= maxFolders) return [];
    const inner = { folders: [...folders, asText(item.name)], above: [item, ...above], at: `${here}.children` };
    return nodesOfTree(item.children, inner);
  });
}

function requestOf({ item, folders, above, at }: Node, findings: Finding[]): DescribedRequest[] {
  const url = asText(item.url).trim();
  const isOther = /^(?:grpc|websocket|socketio|mcp)/i.test(asText(item._type)) || /^(?:grpcs?|wss?):/i.test(url);
  if (url === '' || isOther || (item.method === undefined && item._type === undefined)) {
    const message = isOther ? 'is not an HTTP request; left out' : 'is not a request with a URL; left out';
    findings.push({ at, message });
    return [];
  }
  const headers = [...above.toReversed().flatMap((folder) => readPairs(folder.headers)), ...readPairs(item.headers)];
  const query = readPairs(item.parameters);
  const sent = listSentHeaders([...new Map(headers.map((header) => [header.name.toLowerCase(), header])).values()]);
  return [
    {
      name: asText(item.name),
      description: asText(item.description) || asText(field(item.meta, 'description')),
      tags: folders.slice(0, 1),
      method: (asText(item.method) || 'GET').toUpperCase(),
      url: addQuery(url, query),
      headers: sent,
      body: bodyOf(item.body, sent.find(([name]) => /^content-type$/i.test(name))?.[1]),
      auth: authOf([item, ...above].map(({ authentication }) => authentication).find(isGiven)),
      inputs: [
        ...toDescribedInputs('path', readPairs(item.pathParameters)),
        ...toDescribedInputs('query', query),
        ...toDescribedInputs('header', headers),
      ],
      at,
    },
  ];
}

/** Returns true if authentication is set and enabled. Otherwise a request inherits it from its folder. */
function isGiven(authentication: unknown): boolean {
  return asText(field(authentication, 'type')) !== '' && field(authentication, 'disabled') !== true;
}

function authOf(authentication: unknown): DescribedRequest['auth'] {
  const type = asText(field(authentication, 'type'));
  if (type === '' || type === 'none') return undefined;
  if (type === 'basic') return 'basic';
  if (type === 'bearer' || type === 'oauth2' || type === 'singleToken') return 'bearer';
  if (type === 'iam')
    return { region: asText(field(authentication, 'region')), service: asText(field(authentication, 'service')) };
  if (type !== 'apikey') return { unsupported: type };
  const isQuery = /query/i.test(asText(field(authentication, 'addTo')));
  const name = asText(field(authentication, 'key')) || (isQuery ? 'api_key' : 'X-API-Key');
  return { in: isQuery ? 'query' : 'header', name };
}

function bodyOf(body: unknown, given: string | undefined): RequestBody | undefined {
  const mediaType = asText(field(body, 'mimeType'));
  const text = asText(field(body, 'text'));
  if (/^multipart\/form-data|^application\/x-www-form-urlencoded/.test(mediaType)) {
    const kind = mediaType.startsWith('multipart') ? 'multipart/form-data' : 'application/x-www-form-urlencoded';
    return { mediaType: kind, fields: toFormFields(readPairs(field(body, 'params'))) };
  }
  if (mediaType === 'application/graphql') return graphqlOf(text);
  const isFile = text === '' && asText(field(body, 'fileName')) !== '';
  if (isFile) return { mediaType: given ?? (mediaType || 'application/octet-stream'), text: '' };
  return readBodyText(given ?? mediaType, text);
}

/** Reads a GraphQL body: JSON with the query and its variables, as it is sent. */
function graphqlOf(text: string): RequestBody | undefined {
  return text.trimStart().startsWith('{"') || /^\s*\{\s*"query"/.test(text)
    ? readBodyText('application/json', text)
    : makeGraphqlBody(text, '');
}

type Values = [name: string, value: string][];

/** Flattens nested values. Their names are joined with dots, as in `user.id`. */
function flatValues(data: unknown, before = '', depth = 0): Values {
  return entriesOf(data).flatMap(([name, value]): Values => {
    if (!isFields(value)) return Array.isArray(value) || value === null ? [] : [[before + name, asText(value)]];
    return depth < 5 ? flatValues(value, `${before}${name}.`, depth + 1) : [];
  });
}

/**
 * Returns the values of all environments. The base environment comes first: its parent is the workspace, and it is the
 * parent of the others.
 */
function environmentsOfList(resources: unknown): Values {
  const all = listOf(resources).filter((one) => field(one, '_type') === 'environment');
  const isBase = (one: unknown) => !asText(field(one, 'parentId')).startsWith('env');
  return [...all.filter(isBase), ...all.filter((one) => !isBase(one))].flatMap((one) => flatValues(field(one, 'data')));
}

function environmentsOfTree(environments: unknown): Values {
  return [environments]
    .flat()
    .flatMap((one) => [
      ...flatValues(field(one, 'data')),
      ...listOf(field(one, 'subEnvironments')).flatMap((inner) => flatValues(field(inner, 'data'))),
    ]);
}
