import { getField, isFields, type JsonFields, toEntries, toList, toText } from '../document/lenient.ts';
import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { addQuery, listSentHeaders, readPairs, toDescribedInputs, toFormFields } from './pairs.ts';
import { collectVariables } from './placeholders.ts';
import { createGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

/** Returns true for an export of format 4, which is a flat list, or a document of format 5, which is a tree. */
export function isInsomnia(root: unknown): root is JsonFields {
  if (!isFields(root)) return false;
  return (root._type === 'export' && Array.isArray(root.resources)) || /\binsomnia\b.*\/5/.test(toText(root.type));
}

/** Returns the OpenAPI document inside an Insomnia design document, as text or a parsed value; undefined without one. */
export function findInsomniaSpec(root: JsonFields): unknown {
  const inList = toList(root.resources).find((resource) => getField(resource, '_type') === 'api_spec');
  const spec = getField(inList, 'contents') ?? getField(root.spec, 'contents');
  return isFields(spec) || toText(spec).trim() !== '' ? spec : undefined;
}

/** Request or folder, with its ancestors. */
type Node = {
  item: JsonFields;
  at: string;
  /** Folder names, outermost first. */
  folders: readonly string[];
  /** Folders, innermost first. */
  ancestors: readonly JsonFields[];
};

const maxFolders = 20;

export function readInsomnia(root: JsonFields): ApiDescription {
  const isList = Array.isArray(root.resources);
  const findings: Finding[] = [];
  const nodes = isList
    ? readNodeList(root.resources)
    : readNodeTree(root.collection, { folders: [], ancestors: [], at: 'collection' });
  const requests = nodes.flatMap((node) => toRequests(node, findings));
  const workspace = isList
    ? toList(root.resources).find((resource) => getField(resource, '_type') === 'workspace')
    : root;
  const title = toText(getField(workspace, 'name')) || findHostTitle(requests, 'Insomnia');
  const description = toText(getField(workspace, 'description')) || toText(getField(root.meta, 'description'));
  const environments = isList ? readEnvironmentList(root.resources) : readEnvironmentTree(root.environments);
  const folderValues = nodes.flatMap(({ ancestors }) =>
    ancestors.flatMap(({ environment }) => flattenValues(environment)),
  );
  const variables = collectVariables([...environments, ...folderValues]);
  return describeRequests(
    requests,
    { format: 'Insomnia', version: isList ? '4' : '5', title, description, variables },
    findings,
  );
}

/** Reads the requests of a flat list, in which each entry names its parent. */
function readNodeList(resources: unknown): Node[] {
  const items = toList(resources).filter(isFields);
  const byId = new Map(items.map((resource) => [toText(resource._id), resource]));
  const requests = items.filter(({ _type: type }) => /request$/.test(toText(type)));
  const orderedRequests = requests.toSorted((a, b) => Number(toText(a.metaSortKey)) - Number(toText(b.metaSortKey)));
  return orderedRequests.map((item) => {
    const ancestors: JsonFields[] = [];
    for (let id = toText(item.parentId); ancestors.length < maxFolders; ) {
      const folder = byId.get(id);
      if (folder?._type !== 'request_group') break;
      ancestors.push(folder);
      id = toText(folder.parentId);
    }
    const folders = ancestors.map(({ name }) => toText(name)).toReversed();
    return { item, folders, ancestors, at: `resources ${toText(item._id) || toText(item.name)}` };
  });
}

function readNodeTree(items: unknown, { folders, ancestors, at }: Omit<Node, 'item'>): Node[] {
  return toList(items).flatMap((item, index): Node[] => {
    const itemAt = `${at}[${index}]`;
    if (!isFields(item)) return [];
    if (!Array.isArray(item.children)) return [{ item, folders, ancestors, at: itemAt }];
    if (folders.length >= maxFolders) return [];
    const inner = {
      folders: [...folders, toText(item.name)],
      ancestors: [item, ...ancestors],
      at: `${itemAt}.children`,
    };
    return readNodeTree(item.children, inner);
  });
}

function toRequests({ item, folders, ancestors, at }: Node, findings: Finding[]): DescribedRequest[] {
  const url = toText(item.url).trim();
  const isOtherProtocol =
    /^(?:grpc|websocket|socketio|mcp)/i.test(toText(item._type)) || /^(?:grpcs?|wss?):/i.test(url);
  if (url === '' || isOtherProtocol || (item.method === undefined && item._type === undefined)) {
    const message = isOtherProtocol ? 'is not an HTTP request; left out' : 'is not a request with a URL; left out';
    findings.push({ at, message });
    return [];
  }
  const headers = [
    ...ancestors.toReversed().flatMap((folder) => readPairs(folder.headers)),
    ...readPairs(item.headers),
  ];
  const query = readPairs(item.parameters);
  const sentHeaders = listSentHeaders([
    ...new Map(headers.map((header) => [header.name.toLowerCase(), header])).values(),
  ]);
  return [
    {
      name: toText(item.name),
      description: toText(item.description) || toText(getField(item.meta, 'description')),
      tags: folders.slice(0, 1),
      method: (toText(item.method) || 'GET').toUpperCase(),
      url: addQuery(url, query),
      headers: sentHeaders,
      body: readBody(item.body, sentHeaders.find(([name]) => /^content-type$/i.test(name))?.[1]),
      auth: readAuth([item, ...ancestors].map(({ authentication }) => authentication).find(isAuthenticationSet)),
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
function isAuthenticationSet(authentication: unknown): boolean {
  return toText(getField(authentication, 'type')) !== '' && getField(authentication, 'disabled') !== true;
}

function readAuth(authentication: unknown): DescribedRequest['auth'] {
  const type = toText(getField(authentication, 'type'));
  if (type === '' || type === 'none') return undefined;
  if (type === 'basic') return 'basic';
  if (type === 'bearer' || type === 'oauth2' || type === 'singleToken') return 'bearer';
  if (type === 'iam')
    return { region: toText(getField(authentication, 'region')), service: toText(getField(authentication, 'service')) };
  if (type !== 'apikey') return { unsupported: type };
  const isQuery = /query/i.test(toText(getField(authentication, 'addTo')));
  const name = toText(getField(authentication, 'key')) || (isQuery ? 'api_key' : 'X-API-Key');
  return { in: isQuery ? 'query' : 'header', name };
}

function readBody(body: unknown, contentType: string | undefined): RequestBody | undefined {
  const mediaType = toText(getField(body, 'mimeType'));
  const text = toText(getField(body, 'text'));
  if (/^multipart\/form-data|^application\/x-www-form-urlencoded/.test(mediaType)) {
    const kind = mediaType.startsWith('multipart') ? 'multipart/form-data' : 'application/x-www-form-urlencoded';
    return { mediaType: kind, fields: toFormFields(readPairs(getField(body, 'params'))) };
  }
  if (mediaType === 'application/graphql') return toGraphqlBody(text);
  const isFile = text === '' && toText(getField(body, 'fileName')) !== '';
  if (isFile) return { mediaType: contentType ?? (mediaType || 'application/octet-stream'), text: '' };
  return readBodyText(contentType ?? mediaType, text);
}

/** Reads a GraphQL body: JSON with the query and its variables, as it is sent. */
function toGraphqlBody(text: string): RequestBody | undefined {
  return text.trimStart().startsWith('{"') || /^\s*\{\s*"query"/.test(text)
    ? readBodyText('application/json', text)
    : createGraphqlBody(text, '');
}

type Values = [name: string, value: string][];

/** Flattens nested values. Their names are joined with dots, as in `user.id`. */
function flattenValues(data: unknown, prefix = '', depth = 0): Values {
  return toEntries(data).flatMap(([name, value]): Values => {
    if (!isFields(value)) return Array.isArray(value) || value === null ? [] : [[prefix + name, toText(value)]];
    return depth < 5 ? flattenValues(value, `${prefix}${name}.`, depth + 1) : [];
  });
}

/**
 * Returns the values of all environments. The base environment comes first: its parent is the workspace, and it is the
 * parent of the others.
 */
function readEnvironmentList(resources: unknown): Values {
  const environments = toList(resources).filter((environment) => getField(environment, '_type') === 'environment');
  const isBase = (environment: unknown) => !toText(getField(environment, 'parentId')).startsWith('env');
  return [...environments.filter(isBase), ...environments.filter((environment) => !isBase(environment))].flatMap(
    (environment) => flattenValues(getField(environment, 'data')),
  );
}

function readEnvironmentTree(environments: unknown): Values {
  return [environments]
    .flat()
    .flatMap((environment) => [
      ...flattenValues(getField(environment, 'data')),
      ...toList(getField(environment, 'subEnvironments')).flatMap((child) => flattenValues(getField(child, 'data'))),
    ]);
}
