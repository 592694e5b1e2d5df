import { everyCredential } from '../../domain/config/authentication.ts';
import { toJsonSchema, withFixedArguments } from '../../domain/config/input-schema.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { filledCredentialProblems } from '../../domain/config/server-rules.ts';
import { fillVariablesIn, toolResolver, urlsBelow } from '../../domain/config/server-wide.ts';
import {
  type Filling,
  filledHeaderProblems,
  fillingOf,
  fillingProblem,
  wholeFillingProblem,
} from '../../domain/config/sizes.ts';
import type { Tool } from '../../domain/config/tool.ts';
import { filledToolProblems } from '../../domain/config/tool-rules.ts';
import { patternAmountProblemOf } from '../../domain/schema/schema-rules.ts';
import type { Problem } from '../../errors.ts';

/**
 * A tool that includes all server-wide configuration. A configuration that was stored before limits existed may exceed
 * them. Only the URL of such a tool is rendered, and each of its calls is refused.
 */
export type FilledTool = { tool: Tool; refusal: string | undefined };

export type FilledTools = {
  ofServer(tool: Tool): FilledTool;
  /** Renders `tool` for a view that fixes these arguments. Rendered text is shared with the other views. */
  ofView(tool: Tool, fixed: Readonly<Record<string, unknown>>): FilledTool;
  /** Sizes of the interpolated variables, for the size of the cache. */
  filling: Filling;
};

export function createFilledTools(config: ServerConfig): FilledTools {
  const { variables } = config;
  const filling = fillingOf(config);
  const ofAll = refusalOfServer(config, wholeFillingProblem(filling));
  const resolve = ofAll === undefined ? toolResolver(config) : undefined;
  const urlOf = urlsBelow(config);
  const refused = (tool: Tool, refusal: string) => ({ tool: { ...tool, url: urlOf(tool.url), headers: {} }, refusal });
  const forViews = new Map<string, FilledTool>();
  let byName: ReadonlyMap<string, Tool> | undefined;

  function ofServer(tool: Tool): FilledTool {
    const refusal = ofAll ?? textOf(filledToolProblems(tool, variables)[0] ?? patternProblem(tool));
    return resolve && refusal === undefined ? { tool: resolve(tool), refusal } : refused(tool, refusal ?? '');
  }

  function wholeTool(name: string): FilledTool {
    byName ??= new Map(config.tools.map((tool) => [tool.name, tool]));
    const made = forViews.get(name) ?? ofServer(byName.get(name) as Tool);
    forViews.set(name, made);
    return made;
  }

  return {
    ofServer,
    ofView(tool, fixed) {
      const { tool: whole, refusal: ofWhole } = wholeTool(tool.name);
      const message = Object.values(fixed).map((value) => fillingProblem(value, variables));
      const refusal = ofWhole ?? message.find((found) => found !== undefined);
      if (refusal !== undefined) return refused(tool, refusal);
      const { title, description } = tool;
      const filled = fillVariablesIn(fixed, variables) as Record<string, unknown>;
      const input_schema = withFixedArguments(whole.input_schema, filled);
      return { tool: { ...whole, ...(title !== undefined && { title }), description, input_schema }, refusal };
    },
    filling: ofAll === undefined ? filling : { ...filling, elsewhere: 0 },
  };
}

/** Returns the reason why no tool of a server can be rendered, or undefined if they can. */
function refusalOfServer(config: ServerConfig, ofWhole: string | undefined): string | undefined {
  const { headers, variables } = config;
  if (ofWhole !== undefined) return `the server configuration ${ofWhole}`;
  const ofCredentials = everyCredential(config).flatMap(({ one, path }) =>
    filledCredentialProblems(one, variables).map((problem) => ({ ...problem, path: `${path}.${problem.path}` })),
  );
  return textOf(ofCredentials[0] ?? filledHeaderProblems(headers, variables)[0]);
}

function patternProblem({ input_schema, output_schema }: Tool): Problem | undefined {
  const found = patternAmountProblemOf(toJsonSchema(input_schema));
  if (found) return { ...found, path: 'input_schema' };
  const ofOutput = output_schema && patternAmountProblemOf(output_schema);
  return ofOutput && { ...ofOutput, path: 'output_schema' };
}

function textOf(problem: Problem | undefined): string | undefined {
  return problem && `${problem.path} ${problem.message}`;
}
