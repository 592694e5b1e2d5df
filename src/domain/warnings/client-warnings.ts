import { clientsWithStrictNames, inWords, knownClients, toolNameOfModels } from '../clients/clients.ts';
import { toJsonSchema } from '../config/input-schema.ts';
import type { Tool } from '../config/tool.ts';
import { firstNames } from '../problems/first-names.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { schemaFaults } from './client-schemas.ts';

type Remark = { path: string; message: string };

/** Warnings about a listed tool that known clients refuse or cut off; each names the clients. */
export function clientWarnings(tool: Tool, at: string, slug: string): Remark[] {
  return [...nameWarnings(tool.name, `${at}.name`, slug), ...schemaWarnings(toJsonSchema(tool.input_schema), at)];
}

function nameWarnings(name: string, path: string, slug: string): Remark[] {
  const remarks: Remark[] = [];
  if (!toolNameOfModels.test(name)) {
    const clients = inWords(clientsWithStrictNames);
    remarks.push({ path, message: `has a dot, which the models of ${clients} refuse; write _ instead` });
  }
  for (const { name: client, toolName } of knownClients) {
    const shown = toolName.shown(slug, name);
    const excess = shown.length - toolName.max;
    if (excess <= 0) continue;
    const message = `is ${shown} in ${client}, which takes ${toolName.max} characters; make the name of the tool shorter by ${excess}`;
    remarks.push({ path, message });
  }
  return remarks;
}

function schemaWarnings(schema: JsonSchema, at: string): Remark[] {
  return schemaFaults.flatMap(({ what, clients, advice, find }) => {
    const found = find(schema);
    if (found.length === 0) return [];
    const where = found.filter((place) => place !== '');
    const named = where.length > 0 ? ` (${firstNames(where)})` : '';
    return [{ path: `${at}.input_schema`, message: `${what}${named}: ${inWords(clients)} refuse the tool; ${advice}` }];
  });
}
