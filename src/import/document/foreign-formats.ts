import { field, isFields, listOf } from './lenient.ts';

/** A format that is known and not read, and how to get one that is. */
type ForeignFormat = { name: string; way: string };
type ForeignText = ForeignFormat & { isIt: RegExp };
type ForeignValue = ForeignFormat & { isIt: (value: object) => boolean };

const asRequests = 'save its requests as a Postman collection, as curl commands or as HAR, and import those';
const viaCurl = 'write the requests as curl commands or in an .http file';

/** Told by how a text begins; only that much of it is looked at. */
const mostRead = 20_000;

const texts: readonly ForeignText[] = [
  {
    name: 'a WSDL description (SOAP)',
    isIt: /^<[^!][^>]*\bwsdl\b|<(?:\w+:)?definitions\b[^>]*\bxmlns[^>]*wsdl/i,
    way: `${asRequests}; SoapUI and Postman read WSDL, and each call becomes a tool`,
  },
  {
    name: 'a WADL description',
    isIt: /<(?:\w+:)?application\b[^>]*wadl/i,
    way: `ask for the OpenAPI document of the API, often at /openapi.json, or ${asRequests}`,
  },
  {
    name: 'OData metadata',
    isIt: /<(?:\w+:)?Edmx\b/i,
    way: 'convert it to OpenAPI first, for example with: npx odata-openapi3 metadata.xml',
  },
  { name: 'a JMeter test plan', isIt: /<jmeterTestPlan\b/, way: asRequests },
  { name: 'a SoapUI project', isIt: /<(?:\w+:)?soapui-project\b/, way: asRequests },
  { name: 'RAML', isIt: /^#%RAML/, way: 'convert it to OpenAPI first; the API Designer of MuleSoft exports it' },
  {
    name: 'API Blueprint',
    isIt: /^FORMAT:\s*1A|^#{1,3} [^\n]*\[(?:GET|POST|PUT|PATCH|DELETE)\b|^\+ Response \d{3}/m,
    way: 'convert it to OpenAPI first, for example with: npx apib2swagger -i api.apib -o openapi.json',
  },
  {
    name: 'Protocol Buffers (gRPC)',
    isIt: /^\s*(?:syntax|edition)\s*=\s*["']|^\s*service\s+\w+\s*\{[^}]*\brpc\s/m,
    way: 'a tool sends HTTP requests, so import the OpenAPI document of a gateway; protoc-gen-openapiv2 makes it of google.api.http annotations',
  },
  {
    name: 'a GraphQL schema',
    isIt: /^\s*(?:extend\s+)?(?:schema\s*(?:@[^\n{]*)?\{|type\s+(?:Query|Mutation)\b)/m,
    way: 'save the queries that agents need as a Postman collection, curl commands or HAR; each becomes a tool',
  },
  {
    name: 'TypeSpec',
    isIt: /^\s*import\s+["']@typespec\//m,
    way: 'compile it to OpenAPI first: npx tsp compile . --emit @typespec/openapi3',
  },
  {
    name: 'Smithy',
    isIt: /^\s*\$version:\s*["']|^\s*namespace\s+[\w.]+\s*$[\s\S]{0,2000}^\s*(?:service|operation)\s+\w+\s*\{/m,
    way: 'convert it to OpenAPI first, with the openapi plugin of smithy build',
  },
  {
    name: 'a PowerShell command',
    isIt: /\bInvoke-(?:RestMethod|WebRequest)\b|WebRequestSession\b/i,
    way: 'in the browser choose "Copy as cURL" or "Save all as HAR" instead',
  },
  {
    name: 'an HTTPie command',
    isIt: /^\s*(?:\$\s+)?(?:https?|xhs?)\s+(?:-\S|[A-Z]{3,7}\s|:?\/|[\w-]+[.:]\S|localhost)/,
    way: 'print the request instead of sending it, with: http --offline --print=HB …, and import what it prints',
  },
  { name: 'a wget command', isIt: /^\s*(?:\$\s+)?wget\s/, way: viaCurl },
  {
    name: 'a program',
    isIt: /^\s*(?:import requests\b|from \w+ import |#!\/|<\?php|package \w+|using [\w.]+;|public class )|\brequests\.(?:get|post|put|patch|delete)\(|\baxios(?:\.\w+)?\(|['"]k6\/http['"]/m,
    way: viaCurl,
  },
  { name: 'a ZIP file', isIt: /^PK[^\w\s]/, way: 'unpack it, and import the description in it' },
  {
    name: 'a PDF file',
    isIt: /^%PDF-/,
    way: `a program cannot rely on it; look for an OpenAPI document of the API, or ${viaCurl}`,
  },
  {
    name: 'an address',
    isIt: /^https?:\/\/\S+$/i,
    way: 'import it as the address of the description, not as its text',
  },
];

const has =
  (...names: string[]) =>
  (value: object) =>
    names.every((name) => field(value, name) !== undefined);

const values: readonly ForeignValue[] = [
  {
    name: 'AsyncAPI',
    isIt: has('asyncapi'),
    way: 'it describes messages and a tool sends HTTP requests; import the OpenAPI document of the API beside it',
  },
  {
    name: 'a GraphQL schema',
    isIt: (value) => [value, field(value, 'data')].some((one) => field(one, '__schema') !== undefined),
    way: 'save the queries that agents need as a Postman collection, curl commands or HAR; each becomes a tool',
  },
  {
    name: 'OpenRPC',
    isIt: has('openrpc'),
    way: 'save the calls as a Postman collection or curl commands; each method becomes a tool',
  },
  {
    name: 'an OpenAPI Overlay',
    isIt: has('overlay', 'actions'),
    way: 'apply it to its OpenAPI document, and import the result',
  },
  { name: 'Arazzo', isIt: has('arazzo'), way: 'import the OpenAPI documents that its sourceDescriptions name' },
  {
    name: 'a Google API discovery document',
    isIt: (value) => /^discovery#/.test(String(field(value, 'kind'))),
    way: 'convert it to OpenAPI first, for example with: npx google-discovery-to-swagger',
  },
  {
    name: 'a Smithy or AWS service model',
    isIt: (value) => has('smithy', 'shapes')(value) || has('metadata', 'operations', 'shapes')(value),
    way: 'convert it to OpenAPI first; https://apis.guru has those of AWS',
  },
  {
    name: 'a Postman environment',
    isIt: (value) => has('_postman_variable_scope')(value) || (has('values', 'name')(value) && !has('item')(value)),
    way: 'it holds values only; export the collection (v2.1) and import that',
  },
  {
    name: 'a Postman collection of format 1',
    isIt: has('requests', 'order'),
    way: 'open it in Postman and export it as Collection v2.1',
  },
  {
    name: 'a Postman data dump',
    isIt: has('collections', 'environments'),
    way: 'export the one collection that you need (v2.1), and import that',
  },
  {
    name: 'an Insomnia environment',
    isIt: (value) => /^environment\.insomnia/.test(String(field(value, 'type'))),
    way: 'it holds values only; export the collection and import that',
  },
  {
    name: 'the settings of a Bruno or OpenCollection folder',
    isIt: (value) => (field(value, 'type') === 'collection' && has('version')(value)) || has('opencollection')(value),
    way: 'its requests are other files; export the collection as one file, or import the text of all of them: cat *.bru */*.bru | toolhost import -',
  },
  {
    name: 'a Thunder Client collection',
    isIt: (value) => /thunder/i.test(String(field(value, 'client') ?? field(value, 'clientName'))),
    way: 'export it as a Postman collection or as OpenAPI',
  },
  {
    name: 'a Hoppscotch collection',
    isIt: (value) => [value, ...listOf(value)].some((one) => has('folders', 'requests')(Object(one))),
    way: 'export it as OpenAPI, or copy its requests as curl commands',
  },
  {
    name: 'a JSON Schema',
    isIt: (value) => /json-schema\.org/.test(String(field(value, '$schema'))),
    way: 'it describes values and no requests; import the OpenAPI document that refers to it',
  },
  {
    name: 'the configuration of an MCP client',
    isIt: has('mcpServers'),
    way: 'the servers that it names exist already; import the description of an HTTP API',
  },
];

/** What a text is that is no description that can be read, and what to do; undefined for what is not known. */
export function foreignFormat(text: string, value?: unknown): string | undefined {
  const start = text.slice(0, mostRead);
  const found =
    (isFields(value) || Array.isArray(value) ? values.find(({ isIt }) => isIt(value as object)) : undefined) ??
    texts.find(({ isIt }) => isIt.test(start));
  return found && `found ${found.name}, which is not read; ${found.way}`;
}
