import { field, isFields, listOf } from './lenient.ts';

/** Known format that cannot be read, and how to get a readable one. */
type ForeignFormat = { name: string; way: string };
type ForeignText = ForeignFormat & { isIt: RegExp };
type ForeignValue = ForeignFormat & { isIt: (value: object) => boolean };

const asRequests = 'Save its requests as a Postman collection, curl commands, or HAR, and import those.';
const viaCurl = 'Write the requests as curl commands or in an .http file.';

/** Formats are recognized by the beginning of a text; only this many characters are searched. */
const maxSearched = 20_000;

const texts: readonly ForeignText[] = [
  {
    name: 'a WSDL description (SOAP)',
    isIt: /^<[^!][^>]*\bwsdl\b|<(?:\w+:)?definitions\b[^>]*\bxmlns[^>]*wsdl/i,
    way: `${asRequests} SoapUI and Postman read WSDL, and each call becomes a tool.`,
  },
  {
    name: 'a WADL description',
    isIt: /<(?:\w+:)?application\b[^>]*wadl/i,
    way: `Ask for the OpenAPI document of the API. If there is none: ${asRequests}`,
  },
  {
    name: 'OData metadata',
    isIt: /<(?:\w+:)?Edmx\b/i,
    way: 'Convert it to OpenAPI first, for example with: npx -p odata-openapi odata-openapi3 metadata.xml',
  },
  { name: 'a JMeter test plan', isIt: /<jmeterTestPlan\b/, way: asRequests },
  { name: 'a SoapUI project', isIt: /<(?:\w+:)?soapui-project\b/, way: asRequests },
  { name: 'RAML', isIt: /^#%RAML/, way: 'Convert it to OpenAPI first; the MuleSoft API Designer exports it.' },
  {
    name: 'API Blueprint',
    isIt: /^FORMAT:\s*1A|^#{1,3} [^\n]*\[(?:GET|POST|PUT|PATCH|DELETE)\b|^\+ Response \d{3}/m,
    way: 'Convert it to OpenAPI first, for example with: npx apib2swagger -i api.apib -o openapi.json',
  },
  {
    name: 'Protocol Buffers (gRPC)',
    isIt: /^\s*(?:syntax|edition)\s*=\s*["']|^\s*service\s+\w+\s*\{[^}]*\brpc\s/m,
    way: 'Import the OpenAPI document of a gateway instead; protoc-gen-openapiv2 generates it from google.api.http annotations.',
  },
  {
    name: 'a GraphQL schema',
    isIt: /^\s*(?:extend\s+)?(?:schema\s*(?:@[^\n{]*)?\{|type\s+(?:Query|Mutation)\b)/m,
    way: 'Save the queries that agents need as a Postman collection, curl commands, or HAR. Each becomes a tool.',
  },
  {
    name: 'TypeSpec',
    isIt: /^\s*import\s+["']@typespec\//m,
    way: 'Compile it to OpenAPI first: npx tsp compile . --emit @typespec/openapi3',
  },
  {
    name: 'Smithy',
    isIt: /^\s*\$version:\s*["']|^\s*namespace\s+[\w.]+\s*$[\s\S]{0,2000}^\s*(?:service|operation)\s+\w+\s*\{/m,
    way: 'Convert it to OpenAPI first, with the openapi plugin of smithy build.',
  },
  {
    name: 'a PowerShell command',
    isIt: /\bInvoke-(?:RestMethod|WebRequest)\b|WebRequestSession\b/i,
    way: 'In the browser, choose "Copy as cURL" or "Save all as HAR" instead.',
  },
  {
    name: 'an HTTPie command',
    isIt: /^\s*(?:\$\s+)?(?:https?|xhs?)\s+(?:-\S|[A-Z]{3,7}\s|:?\/|[\w-]+[.:]\S|localhost)/,
    way: 'Print the request with http --offline --print=HB … and import the output.',
  },
  { name: 'a wget command', isIt: /^\s*(?:\$\s+)?wget\s/, way: viaCurl },
  {
    name: 'a program',
    isIt: /^\s*(?:import requests\b|from \w+ import |#!\/|<\?php|package \w+|using [\w.]+;|public class )|\brequests\.(?:get|post|put|patch|delete)\(|\baxios(?:\.\w+)?\(|['"]k6\/http['"]/m,
    way: viaCurl,
  },
  { name: 'a ZIP file', isIt: /^PK[^\w\s]/, way: 'Unpack it and import the description in it.' },
  {
    name: 'a PDF file',
    isIt: /^%PDF-/,
    way: `Look for an OpenAPI document of the API. If there is none: ${viaCurl}`,
  },
  {
    name: 'an address',
    isIt: /^https?:\/\/\S+$/i,
    way: 'Import it as the address of the description, not as its text.',
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
    way: 'It describes messages. Import the OpenAPI document of the HTTP API instead.',
  },
  {
    name: 'a GraphQL schema',
    isIt: (value) => [value, field(value, 'data')].some((one) => field(one, '__schema') !== undefined),
    way: 'Save the queries that agents need as a Postman collection, curl commands, or HAR. Each becomes a tool.',
  },
  {
    name: 'OpenRPC',
    isIt: has('openrpc'),
    way: 'Save the calls as a Postman collection or curl commands. Each method becomes a tool.',
  },
  {
    name: 'an OpenAPI Overlay',
    isIt: has('overlay', 'actions'),
    way: 'Apply it to its OpenAPI document and import the result.',
  },
  { name: 'Arazzo', isIt: has('arazzo'), way: 'Import the OpenAPI documents listed in its sourceDescriptions.' },
  {
    name: 'a Google API discovery document',
    isIt: (value) => /^discovery#/.test(String(field(value, 'kind'))),
    way: 'Convert it to OpenAPI first; https://apis.guru has the Google APIs.',
  },
  {
    name: 'a Smithy or AWS service model',
    isIt: (value) => has('smithy', 'shapes')(value) || has('metadata', 'operations', 'shapes')(value),
    way: 'Convert it to OpenAPI first; https://apis.guru has the AWS APIs.',
  },
  {
    name: 'a Postman environment',
    isIt: (value) => has('_postman_variable_scope')(value) || (has('values', 'name')(value) && !has('item')(value)),
    way: 'It holds only values. Export the collection (v2.1) and import that.',
  },
  {
    name: 'a Postman collection of format 1',
    isIt: has('requests', 'order'),
    way: 'Open it in Postman and export it as Collection v2.1.',
  },
  {
    name: 'a Postman data dump',
    isIt: has('collections', 'environments'),
    way: 'Export the collection that you need (v2.1) and import that.',
  },
  {
    name: 'an Insomnia environment',
    isIt: (value) => /^environment\.insomnia/.test(String(field(value, 'type'))),
    way: 'It holds only values. Export the collection and import that.',
  },
  {
    name: 'the settings of a Bruno or OpenCollection folder',
    isIt: (value) => (field(value, 'type') === 'collection' && has('version')(value)) || has('opencollection')(value),
    way: 'Its requests are in other files. Export the collection as one file, or import all of them: cat *.bru */*.bru | toolhost import -',
  },
  {
    name: 'a Thunder Client collection',
    isIt: (value) => /thunder/i.test(String(field(value, 'client') ?? field(value, 'clientName'))),
    way: 'Export it as a Postman collection or as OpenAPI.',
  },
  {
    name: 'a Hoppscotch collection',
    isIt: (value) => [value, ...listOf(value)].some((one) => has('folders', 'requests')(Object(one))),
    way: 'Export it as OpenAPI, or copy its requests as curl commands.',
  },
  {
    name: 'a JSON Schema',
    isIt: (value) => /json-schema\.org/.test(String(field(value, '$schema'))),
    way: 'It describes no requests. Import the OpenAPI document that refers to it.',
  },
  {
    name: 'the configuration of an MCP client',
    isIt: has('mcpServers'),
    way: 'It lists MCP servers that already exist. Import the description of an HTTP API instead.',
  },
];

/** Names a format that cannot be read and explains what to do instead. Returns undefined for an unknown format. */
export function explainForeignFormat(text: string, value?: unknown): string | undefined {
  const start = text.slice(0, maxSearched);
  const found =
    (isFields(value) || Array.isArray(value) ? values.find(({ isIt }) => isIt(value as object)) : undefined) ??
    texts.find(({ isIt }) => isIt.test(start));
  return found && `Found ${found.name}, which Toolhost cannot read. ${found.way}`;
}
