// A List document in: its nodes, running and pending pods, and every other object that a plugin may read.

package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

type document struct {
	objs    []apiruntime.Object // everything decodable, finished pods removed
	nodes   []*v1.Node
	bound   []*v1.Pod // spec.nodeName set, not finished
	pending []*v1.Pod // no nodeName, not finished, in input order
	ignored map[string]string
	async   bool // holds objects whose plugins read them through asynchronous handlers
}

func podKey(p *v1.Pod) string { return p.Namespace + "/" + p.Name }

func parse(raw []byte) (*document, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	d := &document{ignored: map[string]string{}}
	dec := clientscheme.Codecs.UniversalDeserializer()
	nodeSeen := map[string]bool{}
	podSeen := map[string]bool{}
	for i, it := range list.Items {
		obj, gvk, err := dec.Decode(it, nil, nil)
		if err != nil {
			if apiruntime.IsNotRegisteredError(err) {
				continue // CRDs and the like do not matter to the scheduler
			}
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		acc, err := meta.Accessor(obj)
		if err != nil {
			return nil, fmt.Errorf("item %d (%s): %w", i, gvk.Kind, err)
		}
		switch o := obj.(type) {
		case *v1.Node:
			if nodeSeen[o.Name] {
				return nil, fmt.Errorf("item %d: duplicate node %q", i, o.Name)
			}
			nodeSeen[o.Name] = true
			d.nodes = append(d.nodes, o)
		case *v1.Pod:
			if o.Namespace == "" {
				o.Namespace = metav1.NamespaceDefault
			}
			if podSeen[podKey(o)] {
				return nil, fmt.Errorf("item %d: duplicate pod %q", i, podKey(o))
			}
			podSeen[podKey(o)] = true
			if o.UID == "" {
				o.UID = types.UID("uid-" + podKey(o))
			}
			if *flagAsCreated {
				if o, err = asCreated(o); err != nil {
					return nil, fmt.Errorf("item %d: %w", i, err)
				}
				obj = o
			}
			// The scheduler's pod informer has the field selector
			// status.phase!=Succeeded,status.phase!=Failed.
			if o.Status.Phase == v1.PodSucceeded || o.Status.Phase == v1.PodFailed {
				if o.Spec.NodeName == "" {
					d.ignored[podKey(o)] = "phase " + string(o.Status.Phase)
				}
				continue
			}
			if o.Spec.NodeName != "" {
				d.bound = append(d.bound, o)
			} else {
				d.pending = append(d.pending, o)
				if sn := o.Spec.SchedulerName; sn != "" && sn != schedName {
					d.ignored[podKey(o)] = "spec.schedulerName " + sn
				} else if o.DeletionTimestamp != nil {
					d.ignored[podKey(o)] = "being deleted (skipPodSchedule)"
				}
			}
		default:
			if acc.GetNamespace() == "" {
				switch gvk.Kind {
				case "Service", "ReplicaSet", "StatefulSet", "ReplicationController", "PersistentVolumeClaim", "PodDisruptionBudget", "ResourceClaim", "CSIStorageCapacity", "Deployment":
					acc.SetNamespace(metav1.NamespaceDefault)
				}
			}
			switch gvk.Kind {
			case "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "CSIStorageCapacity", "ResourceClaim", "ResourceSlice", "DeviceClass":
				d.async = true
			}
		}
		d.objs = append(d.objs, obj)
	}
	return d, nil
}
