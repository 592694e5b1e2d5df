import { Button, Collapse, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import type { ReactNode } from 'react';

type Props = { label: string; children: ReactNode; isInitiallyOpen?: boolean };

/** Collapsible content that few people need. */
export function Collapsible({ label, children, isInitiallyOpen = false }: Props) {
  const [isOpen, { toggle }] = useDisclosure(isInitiallyOpen);
  return (
    <div>
      <Button
        variant="subtle"
        color="gray"
        size="compact-sm"
        onClick={toggle}
        aria-expanded={isOpen}
        leftSection={isOpen ? <IconChevronDown size={15} /> : <IconChevronRight size={15} />}
      >
        {label}
      </Button>
      <Collapse expanded={isOpen} keepMounted={false}>
        <Stack gap="sm" pt="sm">
          {children}
        </Stack>
      </Collapse>
    </div>
  );
}
