import { ActionIcon, type MantineColorScheme, Menu, useMantineColorScheme } from '@mantine/core';
import { IconCheck, IconDeviceDesktop, IconMoon, IconSun } from '@tabler/icons-react';

const schemes: { value: MantineColorScheme; label: string; Icon: typeof IconSun }[] = [
  { value: 'auto', label: 'System', Icon: IconDeviceDesktop },
  { value: 'light', label: 'Light', Icon: IconSun },
  { value: 'dark', label: 'Dark', Icon: IconMoon },
];

export function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Current = schemes.find(({ value }) => value === colorScheme)?.Icon ?? IconSun;
  return (
    <Menu position="top-end" withinPortal>
      <Menu.Target>
        <ActionIcon size="lg" aria-label="Theme">
          <Current size={16} stroke={1.5} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ value, label, Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={16} />}
            rightSection={value === colorScheme ? <IconCheck size={14} /> : null}
            onClick={() => setColorScheme(value)}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
