import { Badge, Box, Button, Group, Radio, Stack, Text } from '@mantine/core';
import type { ReimportPlan } from '../../api-types.ts';
import { Collapsible } from '../../ui/collapsible.tsx';
import { ExpandableList } from '../../ui/expandable-list.tsx';
import { Section } from '../../ui/section.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { type ChangeLabels, Side } from '../change-list.tsx';
import { Operations, type Selection, sumTokens } from '../import/operations.tsx';

type ChangesProps = {
  /** Fields of the server itself. */
  server?: ReimportPlan['server'];
  tools: ReimportPlan['changed'];
  count: number;
  /** Noun for the tools. */
  noun: string;
  labels: ChangeLabels;
};

/** List of changes or differences of the server and its tools, in batches. */
export function Changes({ server = [], tools, count, noun, labels }: ChangesProps) {
  return (
    <Stack gap="sm">
      <Fields fields={server} labels={labels} />
      <ExpandableList entries={tools} count={count} noun={noun}>
        {({ tool, operation, fields }) => (
          <Box key={tool} className="th-pick-group">
            <Text>
              <span className="th-mono">{toVisible(tool)}</span>{' '}
              <Text span size="xs" c="dimmed">
                {toVisible(operation)}
              </Text>
            </Text>
            <Fields fields={fields} labels={labels} />
          </Box>
        )}
      </ExpandableList>
    </Stack>
  );
}

/** Fields with both values. */
function Fields({ fields, labels }: { fields: ReimportPlan['server']; labels: ChangeLabels }) {
  return fields.map(({ path, before, after }) => (
    <div key={path} className="th-change">
      <Text fw={600} className="th-mono">
        {toVisible(path)}
      </Text>
      <Side kind="removed" label={labels.before} value={before} />
      <Side kind="added" label={labels.after} value={after} />
    </div>
  ));
}

type ConflictsProps = {
  plan: ReimportPlan;
  /** Keys of the conflicts resolved in favor of the description; `*` means all. */
  acceptedKeys: ReadonlySet<string>;
  onAcceptedKeys: (acceptedKeys: ReadonlySet<string>) => void;
};

/** Conflicts: values that both the user and the description changed, resolved one by one. */
export function Conflicts({ plan: { conflicts, counts }, acceptedKeys, onAcceptedKeys }: ConflictsProps) {
  if (counts.conflicts === 0) return null;
  const keys = new Set(conflicts.map(({ key }) => key));
  const currentKeys = acceptedKeys.has('*') ? keys : acceptedKeys;
  return (
    <Section
      title={counts.conflicts === 1 ? '1 conflict' : `${counts.conflicts} conflicts`}
      text="You edited these values, and the description changed them too. Yours are kept unless you choose otherwise."
      actions={
        <Group gap="sm">
          <Button variant="default" onClick={() => onAcceptedKeys(new Set())}>
            Keep all yours
          </Button>
          <Button
            variant="default"
            onClick={() => onAcceptedKeys(counts.conflicts > keys.size ? new Set(['*']) : keys)}
          >
            Use all from description
          </Button>
        </Group>
      }
    >
      <Stack gap="sm">
        <ExpandableList entries={conflicts} count={counts.conflicts} noun="conflicts">
          {({ key, tool, path, before, yours, document }) => (
            <Radio.Group
              key={key}
              className="th-pick-group"
              label={<span className="th-mono">{toVisible(tool === undefined ? path : `${tool}: ${path}`)}</span>}
              value={currentKeys.has(key) ? 'document' : 'yours'}
              onChange={(side) =>
                onAcceptedKeys(
                  side === 'document' ? currentKeys.union(new Set([key])) : currentKeys.difference(new Set([key])),
                )
              }
            >
              <Stack gap={6} pt={6}>
                <Text size="xs" c="dimmed" className="th-value">
                  Last import: {formatValue(before)}
                </Text>
                <Radio value="yours" label={<Value name="Yours" text={yours} />} />
                <Radio value="document" label={<Value name="Description" text={document} />} />
              </Stack>
            </Radio.Group>
          )}
        </ExpandableList>
      </Stack>
    </Section>
  );
}

function Value({ name, text }: { name: string; text: string | undefined }) {
  return (
    <span className="th-value">
      <strong>{name}:</strong> {formatValue(text)}
    </span>
  );
}

const formatValue = (text: string | undefined) => (text === undefined ? 'not set' : toVisible(text));

/** Tools whose operation was removed from the description. */
export function RemovedTools({ plan: { gone, counts } }: { plan: ReimportPlan }) {
  if (counts.gone === 0) return null;
  return (
    <Section
      title={counts.gone === 1 ? '1 tool to disable' : `${counts.gone} tools to disable`}
      text="Their operations were removed from the description. They stay in the configuration, hidden from agents."
    >
      <Stack gap={4}>
        <ExpandableList entries={gone} count={counts.gone} noun="tools to disable">
          {(tool) => (
            <div key={tool} className="th-mono">
              {toVisible(tool)}
            </div>
          )}
        </ExpandableList>
      </Stack>
    </Section>
  );
}

/** Operations without a tool: new ones, and a collapsed list of those not selected before. */
export function NewOperations({ plan: { offered, counts }, ...choice }: Selection & { plan: ReimportPlan }) {
  if (counts.offered === 0) return null;
  const newOperations = offered.filter((operation) => operation.new);
  const otherOperations = offered.filter((operation) => !operation.new);
  const hiddenCount = counts.offered - offered.length;
  return (
    <Section
      title={newOperations.length > 0 ? 'New operations' : 'Operations without a tool'}
      text="These operations have no tool. Select the ones to add."
      actions={
        <Badge size="lg" aria-live="polite">
          {choice.chosen.size} to add, about {sumTokens(offered, choice.chosen).toLocaleString('en')} tokens
        </Badge>
      }
    >
      <Stack gap="sm">
        {newOperations.length > 0 && <Operations operations={newOperations} {...choice} />}
        {otherOperations.length > 0 && (
          <Collapsible label={`Show ${otherOperations.length} other operations`}>
            <Operations label="Search other operations" operations={otherOperations} {...choice} />
          </Collapsible>
        )}
        {hiddenCount > 0 && <div>{hiddenCount} more operations are not shown. Add them with the command line.</div>}
      </Stack>
    </Section>
  );
}
