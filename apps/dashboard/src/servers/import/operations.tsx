import { Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconSearch } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import type { ImportPlan } from '../../api-types.ts';
import { ExpandableList } from '../../ui/expandable-list.tsx';
import { toVisible } from '../../ui/text/visible.ts';

type ReportLine = ImportPlan['report'][number];

/** Operation to choose, from an import plan or a reimport. */
type Operation = Pick<ReportLine, 'operation' | 'tool' | 'group' | 'tokens' | 'deprecated'> &
  Partial<Pick<ReportLine, 'outcome' | 'notes'>>;

/** Number of operations after which a search expands no further groups, and below which all groups start expanded. */
const maxExpanded = 200;
const minCollapsed = 20;

/** Selected operations, by tool name. */
export type Selection = { chosen: ReadonlySet<string>; onChosen: (chosen: ReadonlySet<string>) => void };
type Props = Selection & {
  operations: readonly Operation[];
  /** Groups in order. Others follow. */
  order?: readonly string[];
  label?: string;
  actions?: ReactNode;
};

export function Operations({ operations, order = [], label = 'Search operations', actions, ...choice }: Props) {
  const [search, setSearch] = useState('');
  const terms = search.toLowerCase().split(/\s+/);
  const matching = operations.filter(({ operation, tool, group }) => {
    const text = `${operation} ${tool} ${group}`.toLowerCase();
    return terms.every((term) => text.includes(term));
  });
  const groups = Map.groupBy(matching, ({ group }) => group);
  const isExpanded = search.trim() !== '' || groups.size === 1 || operations.length < minCollapsed;
  let expandedCount = 0;
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <TextInput
          aria-label={label}
          placeholder="Search"
          leftSection={<IconSearch size={16} />}
          flex="1 1 12rem"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
        {actions}
      </Group>
      {matching.length === 0 && <Text c="dimmed">No matching operations.</Text>}
      {[...new Set([...order, ...groups.keys()])].map((name) => {
        const groupOperations = groups.get(name);
        if (!groupOperations) return null;
        const startsOpen = isExpanded && expandedCount < maxExpanded;
        expandedCount += groupOperations.length;
        return (
          <OperationGroup
            key={name}
            name={toVisible(name)}
            operations={groupOperations}
            startsOpen={startsOpen}
            {...choice}
          />
        );
      })}
    </Stack>
  );
}

type GroupProps = Selection & { name: string; operations: readonly Operation[]; startsOpen: boolean };

function OperationGroup({ name, operations, chosen, onChosen, startsOpen }: GroupProps) {
  const [isToggled, setToggled] = useState(false);
  const isOpen = startsOpen !== isToggled;
  const count = operations.filter(({ tool }) => chosen.has(tool)).length;
  const isAll = count === operations.length;
  const choose = (targets: readonly Operation[], isChosen: boolean) => {
    const tools = new Set(targets.map(({ tool }) => tool));
    onChosen(isChosen ? chosen.union(tools) : chosen.difference(tools));
  };
  return (
    <div className="th-pick-group">
      <Group gap="xs" wrap="nowrap">
        <Checkbox
          aria-label={name}
          checked={isAll}
          indeterminate={count > 0 && !isAll}
          onChange={(event) => choose(operations, event.currentTarget.checked)}
        />
        <Button
          variant="subtle"
          color="gray"
          c="var(--th-text)"
          size="compact-sm"
          flex={1}
          justify="space-between"
          aria-expanded={isOpen}
          rightSection={
            <Group gap="xs" component="span" wrap="nowrap" c="dimmed" fw={400}>
              {count} of {operations.length}
              {isOpen ? <IconChevronDown size={15} /> : <IconChevronRight size={15} />}
            </Group>
          }
          onClick={() => setToggled(!isToggled)}
        >
          {name}
        </Button>
      </Group>
      {isOpen && (
        <Stack gap={6} pl="xl" pt="xs">
          <ExpandableList entries={operations} count={operations.length} noun={`of ${name}`} pageSize={100}>
            {(operation) => (
              <Checkbox
                key={operation.tool}
                checked={chosen.has(operation.tool)}
                onChange={(event) => choose([operation], event.currentTarget.checked)}
                {...getOperationProps(operation)}
              />
            )}
          </ExpandableList>
        </Stack>
      )}
    </div>
  );
}

/** Meaning of an operation's notes, by outcome. */
const outcomeLabels = { loosened: 'not validated', partial: 'omitted', skipped: 'skipped' } as const;

function getOperationProps({ tool, operation, tokens, outcome = 'whole', notes = [], deprecated }: Operation) {
  const limitations = outcome === 'whole' ? [] : [`${outcomeLabels[outcome]}: ${notes.join(', ')}`];
  const remarks = [...limitations, ...(deprecated ? ['deprecated'] : [])];
  return {
    label: (
      <>
        <span className="th-mono">{toVisible(tool)}</span>{' '}
        <Text span size="hint" c="dimmed">
          {toVisible(operation)}
        </Text>{' '}
        <Text span size="xs" c="dimmed" ml="auto">
          {tokens} tokens
        </Text>
      </>
    ),
    description: remarks.length > 0 && <span className="th-remarks">{toVisible(remarks.join('; '))}</span>,
  };
}

export function sumTokens(operations: readonly Operation[], chosen: ReadonlySet<string>): number {
  return operations.reduce((sum, { tool, tokens }) => sum + (chosen.has(tool) ? tokens : 0), 0);
}

/**
 * Converts the selected tools to entries of `include`. These are requests, because a tag may have the name of a tool. A
 * request that is abbreviated, numbered, or has a wildcard could match others, so the tool's name is used instead.
 */
export function toSelectors(operations: readonly Operation[], chosen: ReadonlySet<string>): string[] {
  return operations
    .filter(({ tool }) => chosen.has(tool))
    .map(({ operation, tool }) => (/[*…]|\(\d+\)$/.test(operation) ? tool : operation));
}
