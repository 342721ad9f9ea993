// Amounts of resources as people write them, and how much of them is asked.

import { el, written } from "../basics/text.js";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function bytes(number) {
  let [amount, unit] = [number, 0];
  while (amount >= 1024 && unit < UNITS.length - 1) [amount, unit] = [amount / 1024, unit + 1];
  return `${Number(amount.toFixed(amount < 10 ? 1 : 0))} ${UNITS[unit]}`;
}

/** `amount` is in thousandths of a core for the CPU, in bytes for memory and storage, else a number. */
export function amountOf(resource, amount) {
  if (resource === "cpu") return amount % 1000 ? `${written(amount)} m` : `${written(amount / 1000)} ${amount === 1000 ? "core" : "cores"}`;
  return resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-") ? bytes(amount) : written(amount);
}

export const mebibytes = (number) => (number ? bytes(number * 1024 * 1024) : "");

/** How much of a resource is asked of what there is, in words and as a bar. */
export function used(resource, asked, allocatable) {
  const share = allocatable ? Math.round((asked / allocatable) * 100) : 0;
  return [
    `${amountOf(resource, asked)} of ${amountOf(resource, allocatable)}${resource === "pods" ? "" : " asked"} (${share} %)`,
    el("meter", { min: 0, max: 100, value: Math.min(share, 100), "aria-hidden": "true" }),
  ];
}
