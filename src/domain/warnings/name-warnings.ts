import { argumentsOf } from '../config/input-schema.ts';
import { parseBodyTemplate } from '../config/sending/body-template.ts';
import { bodyKindOf, destinationsOf } from '../config/sending/destinations.ts';
import { readAsConstants, wireNameOf } from '../config/sending/names-beside.ts';
import type { ServerConfig } from '../config/server-config.ts';
import { toolResolver } from '../config/server-wide.ts';
import type { Tool } from '../config/tool.ts';
import { indexTools, viewToolOf } from '../config/view.ts';
import { namesBeside } from '../http/parameter-names.ts';
import { parseUrlTemplate } from '../http/url-template.ts';
import { shown } from '../problems/problems.ts';

type Remark = { path: string; message: string };

/** The arguments of a tool under the names that they have upstream, with the place of each. */
function placed(tool: Tool) {
  const declared = argumentsOf(tool.input_schema);
  const names = declared.map(({ name }) => name);
  const { template } = parseUrlTemplate(tool.url, names);
  const kind = bodyKindOf(tool);
  const inBody = kind === 'template' ? parseBodyTemplate(tool.body_template, names).names : [];
  const destinations = destinationsOf(tool, declared, { inUrl: template?.names ?? [], inBody });
  const named = declared.map((one) => ({ name: one.name, wireName: wireNameOf(one), style: one.wire.style }));
  const at = (place: string) => named.filter(({ name }) => destinations.get(name) === place);
  return { kind, pairs: template?.query ?? [], inQuery: at('query'), inBody: at('body') };
}

/**
 * Warnings about arguments that are sent beside a pair of the URL that a receiver could read as the same parameter. Both
 * are sent, because arguments outside the template always are (specification 4.3.3), and some APIs take the last one as
 * meant; others take the first, or both as a list.
 */
export function besideUrl(tool: Tool, at: string): Remark[] {
  if (!tool.url.includes('?')) return [];
  const { pairs, inQuery } = placed(tool);
  if (inQuery.length === 0) return [];
  const names = [...new Set(pairs.map(({ name }) => name).filter((name) => name !== ''))].slice(0, mostPairs);
  const beside = namesBeside([...inQuery.map(({ wireName }) => wireName), ...names]);
  return inQuery.flatMap(({ name }, index) => {
    const place = beside.alike(index).find((other) => other >= inQuery.length);
    const pair = place === undefined ? undefined : names[place - inQuery.length];
    if (pair === undefined) return [];
    const message = `the URL has ${shown(pair)} too, so both are sent and the API decides which one counts; write :${name} as its value there, or give the argument a "default" and take the pair out of the URL`;
    return [{ path: `${at}.input_schema.${name}`, message }];
  });
}

const mostPairs = 100;

/** Warnings about arguments that a view does not send, because they could take the place of one that it fixes. */
export function besideFixed(config: ServerConfig): Remark[] {
  const { byName } = indexTools(config.tools);
  // Up to 20 views may fix arguments of the same tool, whose names are compared once.
  const resolve = toolResolver(config);
  const compared = new Map<string, ReturnType<typeof comparedNames>>();
  return Object.entries(config.views ?? {}).flatMap(([view, { tools = [] }]) =>
    tools.flatMap((entry, index) => {
      const { name, arguments: fixed } = viewToolOf(entry);
      const tool = fixed && byName.get(name);
      if (!tool) return [];
      const names = compared.get(name) ?? comparedNames(resolve(tool));
      compared.set(name, names);
      return ofFixed(names, Object.keys(fixed), `views.${view}.tools[${index}].arguments`);
    }),
  );
}

function comparedNames(tool: Tool) {
  const { kind, inQuery, inBody } = placed(tool);
  const wireNames = new Map([...inBody, ...inQuery].map(({ name, wireName }) => [name, wireName]));
  return { wireNames, ofQuery: readAsConstants(inQuery, 'query'), ofBody: readAsConstants(inBody, kind) };
}

function ofFixed(
  { wireNames, ofQuery, ofBody }: ReturnType<typeof comparedNames>,
  fixed: string[],
  at: string,
): Remark[] {
  const names = new Set(fixed);
  const lost = Map.groupBy([...ofQuery(names), ...ofBody(names)], ({ constant }) => constant);
  return fixed.flatMap((name) => {
    const wireName = wireNames.get(name);
    const others = wireName === undefined ? undefined : lost.get(wireName);
    if (wireName === undefined || !others) return [];
    const message = `${listed(others.map((one) => shown(one.wireName)))} could be read as ${shown(wireName)}, and so is not sent in this view; fix it as well, or take it out of the tool`;
    return [{ path: `${at}.${name}`, message }];
  });
}

const mostListed = 3;

function listed(names: readonly string[]): string {
  const rest = names.length - mostListed;
  return names.slice(0, mostListed).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
