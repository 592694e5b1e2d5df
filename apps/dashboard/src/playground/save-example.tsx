import { Button } from '@mantine/core';
import type { Input } from '@toolhost/server/operations';
import { api } from '../api.ts';
import type { JsonObject } from '../api-types.ts';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { asList, asText, getTools, getValueAt, isJsonEqual, isObject, withValue } from '../servers/config.ts';
import { isJsonSchema } from '../servers/schema.ts';
import { useCurrentServer } from '../servers/server-page.tsx';
import { useAction } from '../ui/actions/use-action.ts';

/** Maximum examples of a field, as in the configuration schema. */
const maxExamples = 20;

/** Returns the tool's schema with these arguments added to its field examples, or undefined if nothing changes. */
function withExamples(schema: JsonObject, args: JsonObject): JsonObject | undefined {
  const prefix = isJsonSchema(schema) ? ['properties'] : [];
  const changed = Object.entries(args).reduce<unknown>((updated, [name, value]) => {
    const field = getValueAt(updated, [...prefix, name]);
    if (!isObject(field) || field.value !== undefined) return updated;
    const examples = asList(field.examples);
    if (examples.length >= maxExamples || examples.some((example) => isJsonEqual(example, value))) return updated;
    return withValue(updated, [...prefix, name, 'examples'], [...examples, value]);
  }, schema);
  return changed === schema ? undefined : (changed as JsonObject);
}

/** Button that saves the arguments of a call as examples of its tool, which models read. */
export function SaveExample({ tool: name, args }: { tool: string; args: JsonObject }) {
  const { server, config } = useCurrentServer();
  const canEdit = useCanEdit();
  const tool = getTools(config).find((candidate) => asText(candidate.name) === name);
  const changed = tool && isObject(tool.input_schema) ? withExamples(tool.input_schema, args) : undefined;
  const save = useAction({
    run: (input_schema: JsonObject) =>
      api('updateTool', { slug: server.slug, tool: name, input_schema } as Input<'updateTool'>, {
        version: server.version,
      }),
    toast: () => `Saved the arguments as examples of ${name}`,
    refresh: [queryKeys.servers],
    toastFailure: true,
  });
  if (!canEdit || !tool || Object.keys(args).length === 0) return null;
  return (
    <Button
      variant="default"
      size="compact-sm"
      disabled={!changed}
      loading={save.isPending}
      onClick={() => changed && save.mutate(changed)}
    >
      {changed ? 'Save as example' : 'Saved as example'}
    </Button>
  );
}
